// SPDX-License-Identifier: MIT
//! One display as a page of metrics, each client by itself.

use crate::metrics::{CLIENT, Format, Page, SERVER, WAITS, escaped};
use crate::sample::{Client, Sample};

pub fn text(sample: &Sample, format: Format) -> String {
    let mut page = Page::new(format);
    for metric in &SERVER {
        page.begin(&metric.head);
        if let Some(value) = (metric.value)(&sample.server) {
            page.value(&metric.head, "", value);
        }
    }
    for metric in &CLIENT {
        page.begin(&metric.head);
        for client in &sample.clients {
            if let Some(value) = (metric.value)(&client.entry) {
                page.value(&metric.head, &labels(client), value);
            }
        }
    }
    page.begin(&WAITS);
    for client in &sample.clients {
        let counts = client.entry.waits.map(u64::from);
        page.waits(&WAITS, &labels(client), &counts, client.entry.waited_ns as f64 / 1e9);
    }
    page.finish()
}

fn labels(client: &Client) -> String {
    let pid = client.pid.map_or_else(String::new, |pid| pid.to_string());
    format!("client=\"{}\",pid=\"{pid}\",program=\"{}\"", client.client, escaped(&client.name))
}
