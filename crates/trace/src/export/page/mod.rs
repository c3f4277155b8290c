//! One page that shows a trace and needs nothing else: no network, no server, no installation.
//!
//! `page.html` is what stands where, `page.css` how it looks, `page.js` what it does; `web/` has what pages share.
//!
//! The records become arrays of numbers, in base64, which the page's script reads without parsing; what is drawn for a
//! pixel is found by binary search in them, so a million records pan like a thousand.

use crate::file::Header;
use crate::model::Model;
use crate::names::Names;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use std::collections::BTreeMap;
use xqos_abi::trace::{Event, What};
use xqos_core::Time;

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = concat!(
    include_str!("../../../../../web/colours.css"),
    include_str!("../../../../../web/viewer.css"),
    include_str!("page.css")
);
const SCRIPT: &str = concat!(
    "\"use strict\";\n",
    include_str!("../../../../../web/format.js"),
    include_str!("../../../../../web/dom.js"),
    include_str!("../../../../../web/search.js"),
    include_str!("../../../../../web/timeline.js"),
    include_str!("../../../../../web/viewer.js"),
    include_str!("page.js")
);
const PLACE: &str = "/*DATA*/";

/// A client's lane: times in ns since the beginning.
#[derive(Debug, Default)]
struct Lane {
    /// Slices: begin, end, name, requests.
    slices: [Vec<f64>; 2],
    slice_names: Vec<u32>,
    slice_requests: Vec<u32>,
    /// Bursts: activation, deactivation.
    bursts: [Vec<f64>; 2],
    /// Budget: when, how much is left, deadline.
    budgets: [Vec<f64>; 3],
    inputs: Vec<f64>,
    exposes: Vec<f64>,
    name: String,
    gone: bool,
}

#[derive(Serialize)]
struct PageLane {
    name: String,
    gone: bool,
    slices: [String; 2],
    slice_names: String,
    slice_requests: String,
    bursts: [String; 2],
    budgets: [String; 3],
    inputs: String,
    exposes: String,
}

#[derive(Serialize)]
struct Page {
    title: String,
    policy: String,
    level: String,
    span_ns: f64,
    lost: u64,
    names: Vec<String>,
    lanes: Vec<PageLane>,
    worst: Vec<PageWorst>,
}

#[derive(Serialize)]
struct PageWorst {
    begin_ns: f64,
    end_ns: f64,
    text: String,
}

/// The page of a trace.
pub fn render(header: &Header, events: impl Iterator<Item = Event>, names: &Names) -> serde_json::Result<String> {
    let mut model = Model::new();
    let mut lanes: BTreeMap<usize, Lane> = BTreeMap::new();
    let mut texts: Vec<String> = Vec::new();
    let mut text_of: BTreeMap<u32, u32> = BTreeMap::new();
    for event in events {
        let burst = model.take(&event);
        let Some(began) = model.began else { continue };
        let since = |at: Time| (i128::from(at.0) - i128::from(began.0)) as f64;
        if let Some(burst) = burst {
            let lane = lanes.entry(burst.key).or_default();
            lane.bursts[0].push(since(burst.activation));
            lane.bursts[1].push(since(burst.end));
        }
        let key = crate::show::client_of(&event.what).and_then(|id| model.key(id));
        let Some(key) = key else { continue };
        let lane = lanes.entry(key).or_default();
        match event.what {
            What::Served { start, requests, last_request, .. } => {
                let name = *text_of.entry(last_request).or_insert_with(|| {
                    texts.push(names.of(last_request));
                    texts.len() as u32 - 1
                });
                lane.slices[0].push(since(start.min(event.at)));
                lane.slices[1].push(since(event.at));
                lane.slice_names.push(name);
                lane.slice_requests.push(requests);
            }
            What::Budget { left_ns, deadline, .. } => {
                lane.budgets[0].push(since(event.at));
                lane.budgets[1].push(left_ns as f64);
                lane.budgets[2].push(since(deadline));
            }
            What::Input { .. } => lane.inputs.push(since(event.at)),
            What::Exposed { .. } => lane.exposes.push(since(event.at)),
            _ => {}
        }
    }
    for (&key, lane) in &mut lanes {
        lane.name = model.name(key);
        lane.gone = model.clients().get(key).is_some_and(|client| client.gone.is_some());
    }
    lanes.retain(|_, lane| !lane.slices[0].is_empty());
    let worst = model.worst().iter().map(|burst| {
        let since = |at: Time| model.began.map_or(0.0, |began| at.since(began) as f64);
        let text = crate::show::burst(burst, &model, names);
        PageWorst { begin_ns: since(burst.activation), end_ns: since(burst.end), text }
    });
    let page = Page {
        title: format!("Trace of the X server {}", header.display),
        policy: model.policy.map_or_else(String::new, |policy| policy.name().to_owned()),
        level: header.level.clone(),
        span_ns: model.span_ns() as f64,
        lost: model.lost,
        names: texts,
        worst: worst.collect(),
        lanes: lanes.into_values().map(PageLane::from).collect(),
    };
    // "</script>" in a name would end the script.
    let json = serde_json::to_string(&page)?.replace('<', "\\u003c");
    // The data come last: no name in them is taken for a place.
    Ok(TEMPLATE.replace("/*STYLE*/", STYLE).replace("/*SCRIPT*/", SCRIPT).replacen(PLACE, &json, 1))
}

impl From<Lane> for PageLane {
    fn from(lane: Lane) -> PageLane {
        PageLane {
            name: lane.name,
            gone: lane.gone,
            slices: lane.slices.map(|times| floats(&times)),
            slice_names: integers(&lane.slice_names),
            slice_requests: integers(&lane.slice_requests),
            bursts: lane.bursts.map(|times| floats(&times)),
            budgets: lane.budgets.map(|numbers| floats(&numbers)),
            inputs: floats(&lane.inputs),
            exposes: floats(&lane.exposes),
        }
    }
}

/// As a Float64Array reads them.
fn floats(numbers: &[f64]) -> String {
    STANDARD.encode(numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>())
}

/// As a Uint32Array reads them.
fn integers(numbers: &[u32]) -> String {
    STANDARD.encode(numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_needs_nothing_from_elsewhere_and_no_name_breaks_it() {
        let client = xqos_core::ClientId(1);
        let events = [
            What::Creation { client, descriptor: 1 },
            What::Identity { client, pid: 3, base: 0x200000, uid: 0 },
            What::Name { client, part: 0, bytes: *b"</script><b>hey\0" },
            What::Activation { client },
            What::Served {
                client,
                still_ready: false,
                ended_early: false,
                requests: 1,
                last_request: 73,
                bytes: 0,
                start: Time(3000),
            },
        ];
        let events = events.into_iter().enumerate().map(|(at, what)| Event { at: Time(at as u64 * 1000), what });
        let page = render(&Header::default(), events, &Names::default()).unwrap();
        assert!(!page.contains(PLACE) && page.contains("\\u003c/script>"), "the data is in it, and harmless");
        for elsewhere in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!page.contains(elsewhere), "{elsewhere}");
        }
    }
}
