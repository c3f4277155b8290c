// SPDX-License-Identifier: MIT
//! CSV, one line per record: `seconds,kind,pid,client,program,request,ns,requests,bytes,value`.
//!
//! `seconds` counts from the start of the trace. `ns` is the length of a slice or of a request, or the remaining
//! budget. Columns that do not apply to a record are empty.

use crate::model::Model;
use crate::names::Names;
use std::io::{self, Write};
use xqos_abi::trace::{Entry, Event};
use xqos_core::{Fact, Service};

pub const HEADER: &str = "seconds,kind,pid,client,program,request,ns,requests,bytes,value";

/// Writes all records except scheduler state and client names.
pub fn write(events: impl Iterator<Item = Event>, names: &Names, out: &mut impl Write) -> io::Result<()> {
    let mut model = Model::new();
    writeln!(out, "{HEADER}")?;
    for event in events {
        model.take(&event);
        if !matches!(event.what, Entry::State { .. } | Entry::Name { .. }) {
            writeln!(out, "{}", line(&event, &model, names))?;
        }
    }
    Ok(())
}

fn line(event: &Event, model: &Model, names: &Names) -> String {
    let seconds = model.since_start_ns(event.at) / 1e9;
    let client = event.what.client().and_then(|id| model.key(id)).map(|key| &model.clients()[key].identity);
    let who = client.map_or_else(
        || ",,".to_owned(),
        |identity| format!("{},{:#x},{}", identity.pid, identity.base, quoted(&identity.program)),
    );
    let rest = match event.what {
        Entry::Fact(Fact::Served(Service { start, requests, last_request, bytes, .. })) => {
            format!("{},{},{requests},{bytes},", quoted(&names.of(last_request)), event.at.since(start))
        }
        Entry::Cut { request, done, parts, .. } => format!("{},,,,{done}/{parts}", quoted(&names.of(request))),
        Entry::Finished { request, by, ns, .. } => format!("{},{ns},,,{}", quoted(&names.of(request)), by.0),
        Entry::Request { request, bytes, ns, .. } => format!("{},{ns},1,{bytes},", quoted(&names.of(request))),
        Entry::Budget { left_ns, .. } => format!(",{left_ns},,,"),
        Entry::Fact(Fact::Overran { ns }) | Entry::Processor { ns, .. } => format!(",{ns},,,"),
        Entry::Fact(Fact::Reserve { reservation, .. }) | Entry::Refused(Fact::Reserve { reservation, .. }) => {
            format!(",{},,,{}", reservation.budget_ns, reservation.period_ns)
        }
        Entry::Fact(Fact::Policy(kind)) => format!(",,,,{}", kind.name()),
        Entry::Lost { records } => format!(",,,,{records}"),
        Entry::Switch { from, to, .. } => format!(",,,,{from}>{to}"),
        Entry::Wakeup { thread, .. } => format!(",,,,{thread}"),
        Entry::Interrupt { number, is_soft, ns, .. } => {
            format!(",{ns},,,{}", quoted(&model.interrupt_name(number, is_soft)))
        }
        Entry::InterruptName { number, is_soft, .. } => {
            format!(",,,,{}", quoted(&model.interrupt_name(number, is_soft)))
        }
        Entry::ThreadName { thread, .. } | Entry::Thread { thread, .. } => {
            format!(",,,,{}", quoted(&model.thread_name(thread)))
        }
        Entry::Priority { priority, .. } => format!(",,,,{priority}"),
        Entry::Fact(Fact::SyncPriority { priority, .. } | Fact::FixedPriority { priority, .. }) => {
            format!(",,,,{priority}")
        }
        Entry::Fact(Fact::Weight { weight, .. }) => format!(",,,,{weight}"),
        Entry::Fact(Fact::Group { group, .. }) => format!(",,,,{}", group.0),
        _ => ",,,,".to_owned(),
    };
    format!("{seconds:.9},{},{who},{rest}", event.what.name())
}

/// Quotes a field that contains a comma, a quote or a line break (RFC 4180).
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_core::{ClientId, Time};

    #[test]
    fn each_line_has_all_columns_for_any_program_name() {
        let client = ClientId(1);
        let events = [
            Entry::Fact(Fact::Connected { client, descriptor: 4 }),
            Entry::Identity { client, pid: 5, base: 0x200000, uid: 0 },
            Entry::Name { client, part: 0, bytes: *b"a \"b\",c\0\0\0\0\0\0\0\0\0" },
            Entry::Fact(Fact::Arrived { client }),
            Entry::Request { client, request: 73, bytes: 20, ns: 5 },
            Entry::Lost { records: 4 },
            Entry::End,
        ];
        let events = events.into_iter().enumerate().map(|(at, what)| Event { at: Time(at as u64 * 1000), what });
        let mut out = Vec::new();
        write(events, &Names::default(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains(",request,5,0x200000,\"a \"\"b\"\",c\",GetImage,5,1,20,\n"), "{text}");
        for line in text.lines() {
            let columns = line.matches(',').count() - line.matches("\"\",c").count();
            assert_eq!(columns, HEADER.matches(',').count(), "{line}");
        }
    }
}
