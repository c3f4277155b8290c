// SPDX-License-Identifier: MIT
//! A stand-alone HTML page that shows a trace. The page needs no network, server or installation.
//!
//! `page.html` contains the structure, `page.css` the style and the other files the script; `web/` contains the parts
//! that all pages share.
//!
//! Records become base64 arrays of numbers, which the script reads without parsing. The script finds the data for each
//! pixel by binary search, so panning stays fast with a million records.

mod processors;
#[path = "../../../../../web/page.rs"]
mod web;

use crate::file::Header;
use crate::model::{Burst, Model};
use crate::names::Names;
use crate::wire::{Wire, WireConnection};
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use indexmap::IndexSet;
use processors::Processors;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::hash::Hash;
use xqos_abi::trace::{Entry, Event};
use xqos_core::{ClientId, Fact, Service, Time};

const TEMPLATE: &str = include_str!("page/page.html");
const DATA_MARK: &str = "/*DATA*/";

/// Numbers that the page reads from base64 as a Float64Array or Uint32Array.
#[derive(Debug, Default)]
struct PackedNumbers(Vec<u8>);

impl PackedNumbers {
    fn push(&mut self, number: f64) {
        self.0.extend(number.to_le_bytes());
    }

    fn push_integer(&mut self, number: u32) {
        self.0.extend(number.to_le_bytes());
    }

    /// Adds the index of a value among all values.
    fn push_index<T: Hash + Eq>(&mut self, all: &mut IndexSet<T>, value: T) {
        self.push_integer(all.insert_full(value).0 as u32);
    }
}

impl Serialize for PackedNumbers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Base64Display::new(&self.0, &STANDARD))
    }
}

/// A client's lane. Times are in nanoseconds since the start of the trace.
#[derive(Debug, Default, Serialize)]
struct Lane {
    name: String,
    gone: bool,
    /// Begin and end of each slice.
    slices: [PackedNumbers; 2],
    slice_names: PackedNumbers,
    slice_requests: PackedNumbers,
    /// Activation and deactivation of each burst.
    bursts: [PackedNumbers; 2],
    /// Time, remaining budget, and deadline of each budget record.
    budgets: [PackedNumbers; 3],
    /// Budget and period of its last reservation.
    reservation: Option<[f64; 2]>,
    inputs: PackedNumbers,
    exposes: PackedNumbers,
    /// Begin and end of each server grab.
    grabs: [PackedNumbers; 2],
    /// Times when a request of the client was cut.
    cuts: PackedNumbers,
    /// Begin and end of each time that the rest of a cut request was executed for another client's request.
    rests: [PackedNumbers; 2],
    /// The client's messages, if there is a capture.
    wire: Option<Messages>,
}

#[derive(Serialize)]
struct Page {
    title: String,
    policy: String,
    level: String,
    span_ns: f64,
    lost: u64,
    names: Vec<String>,
    /// Names of messages on the wire.
    messages: Vec<String>,
    lanes: Vec<Lane>,
    worst: Vec<PageWorst>,
    explanation: Option<PageWorst>,
    #[serde(flatten)]
    kernel: processors::ProcessorPage,
}

#[derive(Serialize)]
struct PageWorst {
    begin_ns: f64,
    end_ns: f64,
    text: String,
}

/// Optional contents of a page, in addition to the trace.
#[derive(Debug, Default)]
pub struct Additions {
    /// Messages on the wire.
    pub wire: Wire,
    pub explanation: Option<Explanation>,
}

/// An explanation of a wait, which the page shows first.
#[derive(Debug)]
pub struct Explanation {
    /// Paragraphs, and commands that are indented by four spaces.
    pub text: String,
    /// The wait, if there is one.
    pub span: Option<(Time, Time)>,
}

/// Renders a page.
pub fn render(
    header: &Header,
    events: impl Iterator<Item = Event>,
    names: &Names,
    additions: Additions,
) -> serde_json::Result<String> {
    let mut lanes = Lanes::default();
    events.for_each(|event| lanes.take(&event));
    let json = web::json(&lanes.page(header, names, additions))?;
    let style = [web::STYLE, include_str!("page/page.css")].concat();
    let script = [
        web::SCRIPT,
        include_str!("page/data.js"),
        include_str!("page/processors.js"),
        include_str!("page/accounting.js"),
        include_str!("page/wire.js"),
        include_str!("page/page.js"),
    ]
    .concat();
    // Insert the data last, so that no name in the data is mistaken for a placeholder.
    Ok(TEMPLATE.replace("/*STYLE*/", &style).replace("/*SCRIPT*/", &script).replacen(DATA_MARK, &json, 1))
}

/// The lanes of all clients read so far.
#[derive(Default)]
struct Lanes {
    model: Model,
    lanes: BTreeMap<usize, Lane>,
    processors: Processors,
    requests: IndexSet<u32>,
    /// The holder of the server grab, and when the grab started.
    grab: Option<(usize, Time)>,
}

impl Lanes {
    fn take(&mut self, event: &Event) {
        let burst = self.model.take(event);
        if self.model.began.is_none() {
            return;
        }
        self.processors.take(event, &self.model);
        burst.into_iter().for_each(|burst| self.burst(&burst));
        if let Entry::Fact(Fact::Grabbed { by }) = event.what {
            self.grab(by, event.at);
        }
        let since = |at: Time| self.model.since_start_ns(at);
        let Some(key) = event.what.client().and_then(|id| self.model.key(id)) else { return };
        let lane = self.lanes.entry(key).or_default();
        match event.what {
            Entry::Fact(Fact::Served(Service { start, requests, last_request, .. })) => {
                lane.slices[0].push(since(start.min(event.at)));
                lane.slices[1].push(since(event.at));
                lane.slice_names.push_index(&mut self.requests, last_request);
                lane.slice_requests.push_integer(requests);
            }
            Entry::Budget { left_ns, deadline, .. } => {
                lane.budgets[0].push(since(event.at));
                lane.budgets[1].push(left_ns as f64);
                lane.budgets[2].push(since(deadline));
            }
            Entry::Fact(Fact::Input { .. }) => lane.inputs.push(since(event.at)),
            Entry::Fact(Fact::Exposed { .. }) => lane.exposes.push(since(event.at)),
            Entry::Cut { .. } => lane.cuts.push(since(event.at)),
            Entry::Finished { ns, .. } => {
                lane.rests[0].push(since(event.at) - ns as f64);
                lane.rests[1].push(since(event.at));
            }
            _ => {}
        }
    }

    fn burst(&mut self, burst: &Burst) {
        let lane = self.lanes.entry(burst.key).or_default();
        lane.bursts[0].push(self.model.since_start_ns(burst.activation));
        lane.bursts[1].push(self.model.since_start_ns(burst.end));
    }

    fn grab(&mut self, holder: Option<ClientId>, at: Time) {
        if let Some((key, since)) = self.grab.take() {
            let lane = self.lanes.entry(key).or_default();
            lane.grabs[0].push(self.model.since_start_ns(since));
            lane.grabs[1].push(self.model.since_start_ns(at));
        }
        self.grab = holder.and_then(|id| self.model.key(id)).map(|key| (key, at));
    }

    fn page(mut self, header: &Header, names: &Names, Additions { wire, explanation }: Additions) -> Page {
        self.grab(None, self.model.now);
        self.model.unfinished().into_iter().for_each(|event| self.take(&event));
        self.model.end_bursts().iter().for_each(|burst| self.burst(burst));
        let Lanes { model, mut lanes, processors, requests, .. } = self;
        let since = |at: Time| model.since_start_ns(at);
        let (of_clients, of_others) = wire_lanes(&wire, &model);
        of_clients.into_iter().for_each(|(key, messages)| lanes.entry(key).or_default().wire = Some(messages));
        lanes.retain(|_, lane| !lane.slices[0].0.is_empty() || !lane.bursts[0].0.is_empty() || lane.wire.is_some());
        for (&key, lane) in &mut lanes {
            lane.name = model.name(key);
            lane.wire.iter().for_each(|wire| lane.name += &format!(" {}", wire.name));
            let Some(client) = model.clients().get(key) else { continue };
            lane.gone = client.gone.is_some();
            lane.reservation = client.reservation.map(|terms| [terms.budget_ns as f64, terms.period_ns as f64]);
        }
        let worst = model.worst.iter().map(|burst| PageWorst {
            begin_ns: since(burst.activation),
            end_ns: since(burst.end),
            text: crate::show::burst(burst, &model, names),
        });
        let explanation = explanation.map(|Explanation { text, span }| {
            let [begin_ns, end_ns] = span.map_or([0.0; 2], |(from, to)| [since(from), since(to)]);
            PageWorst { begin_ns, end_ns, text }
        });
        Page {
            title: format!("Trace of X server {}", header.display),
            policy: model.policy.map_or_else(String::new, |policy| policy.name().to_owned()),
            level: header.level.clone(),
            span_ns: model.span_ns() as f64,
            lost: model.lost,
            kernel: processors.finish(&model),
            names: requests.iter().map(|&request| name_of(request, names)).collect(),
            messages: wire.names,
            worst: worst.collect(),
            explanation,
            lanes: lanes.into_values().chain(of_others).collect(),
        }
    }
}

/// The name of the last request of a slice, which is 0 if the slice has not ended.
fn name_of(request: u32, names: &Names) -> String {
    if request == 0 { "unfinished".to_owned() } else { names.of(request) }
}

/// The messages of a connection: those of the client, then those of the server.
#[derive(Debug, Default, Serialize)]
struct Messages {
    /// Name of the connection: the program may be behind a relay, which is the server's client.
    #[serde(skip)]
    name: String,
    /// The trace has all requests since the client connected, so sequence numbers show when each one was executed.
    is_whole: bool,
    directions: [Direction; 2],
}

#[derive(Debug, Default, Serialize)]
struct Direction {
    times: PackedNumbers,
    names: PackedNumbers,
    sequences: PackedNumbers,
    bytes: PackedNumbers,
}

/// The messages of the trace's clients by key, and lanes for all other connections.
fn wire_lanes(wire: &Wire, model: &Model) -> (Vec<(usize, Messages)>, Vec<Lane>) {
    let (mut of_clients, mut of_others) = (Vec::new(), Vec::new());
    for (connection, key) in wire.connections.iter().zip(wire.clients(model)) {
        let has_start = key.is_some_and(|key| Some(model.clients()[key].connected) > model.began);
        let is_whole = has_start && model.lost == 0;
        let (name, directions) = (connection.name.clone(), directions(connection, model));
        let messages = Messages { name, is_whole, directions };
        match key {
            Some(key) => of_clients.push((key, messages)),
            None => of_others.push(Lane { name: connection.name.clone(), wire: Some(messages), ..Lane::default() }),
        }
    }
    (of_clients, of_others)
}

fn directions(connection: &WireConnection, model: &Model) -> [Direction; 2] {
    let mut directions: [Direction; 2] = Default::default();
    for message in &connection.messages {
        let direction = &mut directions[usize::from(!message.is_request)];
        direction.times.push(model.since_start_ns(message.at));
        direction.names.push_integer(message.name);
        direction.sequences.push(message.sequence as f64);
        direction.bytes.push(message.bytes as f64);
    }
    directions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_loads_nothing_and_survives_hostile_names() {
        let client = xqos_core::ClientId(1);
        let events = [
            Entry::Fact(Fact::Connected { client, descriptor: 1 }),
            Entry::Identity { client, pid: 3, base: 0x200000, uid: 0 },
            Entry::Name { client, part: 0, bytes: *b"</script><b>hey\0" },
            Entry::Fact(Fact::Arrived { client }),
            Entry::Fact(Fact::Served(Service {
                requests: 1,
                last_request: 73,
                ..Service::new(client, Time(3000), Time(4000))
            })),
        ];
        let events = events.into_iter().enumerate().map(|(at, what)| Event { at: Time(at as u64 * 1000), what });
        let page = render(&Header::default(), events, &Names::default(), Additions::default()).unwrap();
        assert!(!page.contains(DATA_MARK) && page.contains("\\u003c/script>"), "the page contains the data, escaped");
        for elsewhere in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!page.contains(elsewhere), "{elsewhere}");
        }
    }
}
