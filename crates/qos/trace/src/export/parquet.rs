// SPDX-License-Identifier: MIT
//! Adds a trace to a Parquet dataset of many traces, with the tables sessions, clients, bursts and waits.
//!
//! The offset in the header converts times to wall-clock time. A trace that crosses midnight is split into one part per
//! day, each with the figures of its day.

use crate::file::Header;
use crate::model::{Burst, Cause, Client, Figures, Identity, Model};
use crate::names::Names;
use std::path::Path;
use xqos_abi::trace::{Entry, Event};
use xqos_core::{Fact, Time};
use xqos_fleet::Error;
use xqos_fleet::column::Instant;
use xqos_fleet::dataset::{Day, Session, SessionFiles, Written};
use xqos_fleet::tables::{self, Bursts, Clients, Sessions, Waits};

#[derive(Clone, Copy, Debug)]
pub struct TraceTables<'a> {
    pub folder: &'a Path,
    /// The host name to use instead of the name in the header.
    pub host: Option<&'a str>,
    /// Replaces the default session name, which consists of the start time and the server's pid.
    pub session: Option<&'a str>,
}

pub fn write(
    header: &Header,
    events: impl Iterator<Item = Event>,
    names: &Names,
    target: &TraceTables<'_>,
) -> Result<Written, Error> {
    let mut events = events.peekable();
    let began = events.peek().map_or(Time(0), |event| event.at);
    let mut export = Export::new(header, names, target, began);
    for event in events {
        export.take(&event)?;
    }
    export.finish()
}

struct Export<'a> {
    header: &'a Header,
    names: &'a Names,
    session: Session,
    model: Model,
    records: i64,
    burst: i64,
    today: Day,
    /// Monotonic time of the next midnight.
    tomorrow: Time,
    sessions: SessionFiles<Sessions>,
    clients: SessionFiles<Clients>,
    bursts: SessionFiles<Bursts>,
    waits: SessionFiles<Waits>,
}

impl<'a> Export<'a> {
    fn new(header: &'a Header, names: &'a Names, target: &TraceTables<'_>, began: Time) -> Export<'a> {
        let began_ns = unix_ns(header, began);
        let usual = || format!("{began_ns}-{}", header.server_pid);
        let session = Session {
            folder: target.folder.to_owned(),
            host: target.host.unwrap_or(&header.host).to_owned(),
            name: target.session.map_or_else(usual, str::to_owned),
        };
        let (today, tomorrow) = day(header, began);
        Export {
            header,
            names,
            model: Model::new(),
            records: 0,
            burst: 0,
            today,
            tomorrow,
            sessions: SessionFiles::new(&session),
            clients: SessionFiles::new(&session),
            bursts: SessionFiles::new(&session),
            waits: SessionFiles::new(&session),
            session,
        }
    }

    fn take(&mut self, event: &Event) -> Result<(), Error> {
        self.records += 1;
        // Arrivals and kernel events may be recorded late, so only a slice of service starts a new day.
        if event.at >= self.tomorrow && matches!(event.what, Entry::Fact(Fact::Served(_))) {
            self.end_day()?;
            (self.today, self.tomorrow) = day(self.header, event.at);
        }
        match self.model.take(event) {
            Some(burst) => self.burst(&burst),
            None => Ok(()),
        }
    }

    fn burst(&mut self, burst: &Burst) -> Result<(), Error> {
        let Some(client) = self.model.clients().get(burst.key) else { return Ok(()) };
        let number = self.burst;
        self.burst += 1;
        let (program, uid) = (client.identity.program.as_str(), uid(client));
        let row = tables::Burst {
            session: &self.session.name,
            burst: number,
            client: burst.key as i64,
            program,
            uid,
            ended: Instant::of_unix_ns(unix_ns(self.header, burst.end)),
            response_ns: long(burst.end.since(burst.activation)),
            served_ns: long(burst.own_ns),
            waited_ns: long(burst.waited_ns),
        };
        self.bursts.add(&self.header.display, &self.today, &row)?;
        for (cause, ns) in &burst.causes {
            let (session, ns) = (self.session.name.as_str(), long(*ns));
            let wait = tables::Wait { session, burst: number, program, uid, ns, ..Default::default() };
            let request = if let Cause::Client { request, .. } = cause { Some(self.names.of(*request)) } else { None };
            let wait = caused(wait, cause, self.model.clients(), request.as_deref());
            self.waits.add(&self.header.display, &self.today, &wait)?;
        }
        Ok(())
    }

    /// Writes the figures of the day, and ends its files.
    fn end_day(&mut self) -> Result<(), Error> {
        let figures = self.model.take_recent_of_all();
        for (key, figures) in figures.iter().enumerate().filter(|(_, figures)| figures.slices > 0) {
            let client = &self.model.clients()[key];
            let longest = figures.longest_request.map(|(ns, request)| (long(ns), self.names.of(request)));
            let longest = longest.as_ref().map(|(ns, name)| (*ns, name.as_str()));
            let row = client_row(&self.session.name, key, client, figures, longest);
            self.clients.add(&self.header.display, &self.today, &row)?;
        }
        self.clients.close()?;
        self.bursts.close()?;
        self.waits.close()
    }

    fn finish(mut self) -> Result<Written, Error> {
        self.end_day()?;
        let began = self.model.began.unwrap_or(Time(0));
        let row = tables::Session {
            session: &self.session.name,
            began: Instant::of_unix_ns(unix_ns(self.header, began)),
            span_ns: long(self.model.span_ns()),
            level: &self.header.level,
            policy: self.model.policy.map(|policy| policy.name()),
            has_kernel: self.model.kernel,
            records: self.records,
            lost_records: long(self.model.lost),
            decisions: long(self.model.decisions),
            early_ends: long(self.model.early_ends),
        };
        self.sessions.add(&self.header.display, &day(self.header, began).0, &row)?;
        self.sessions.close()?;
        let others = self.clients.finish()?.plus(self.bursts.finish()?).plus(self.waits.finish()?);
        Ok(self.sessions.finish()?.plus(others))
    }
}

fn caused<'a>(
    wait: tables::Wait<'a>,
    cause: &Cause,
    clients: &'a [Client],
    request: Option<&'a str>,
) -> tables::Wait<'a> {
    let by = |key: usize| tables::Wait {
        by_client: Some(key as i64),
        by_program: clients.get(key).map(|client| client.identity.program.as_str()),
        by_uid: clients.get(key).and_then(uid),
        ..wait
    };
    match cause {
        Cause::Server => tables::Wait { cause: "server", ..wait },
        Cause::Kernel => tables::Wait { cause: "kernel", ..wait },
        Cause::HeldBack => tables::Wait { cause: "budget", ..wait },
        Cause::Grab { key } => tables::Wait { cause: "grab", ..by(*key) },
        Cause::Client { key, long, .. } => tables::Wait { cause: "client", request, is_long: Some(*long), ..by(*key) },
    }
}

fn client_row<'a>(
    session: &'a str,
    key: usize,
    client: &'a Client,
    figures: &Figures,
    longest_request: Option<(i64, &'a str)>,
) -> tables::Client<'a> {
    let pid = client.identity.pid;
    tables::Client {
        session,
        client: key as i64,
        program: &client.identity.program,
        pid: (pid != 0).then_some(pid.into()),
        uid: uid(client),
        server_time_ns: long(figures.server_time_ns),
        reserved_time_ns: long(figures.reserved_time_ns),
        requests: long(figures.requests),
        slices: long(figures.slices),
        bursts: long(figures.responses.count()),
        waited_ns: long(figures.waited_ns),
        longest_wait_ns: long(figures.longest_wait_ns),
        longest_request_ns: longest_request.map(|(ns, _)| ns),
        longest_request: longest_request.map(|(_, name)| name),
        misses: long(figures.misses),
        grabs: long(figures.grabs),
        grabbed_ns: long(figures.grabbed_ns),
        inputs: long(figures.inputs),
        cuts: long(figures.cuts),
        finished: long(figures.finished),
        finished_ns: long(figures.finished_ns),
    }
}

/// The user of a client. `None` for a remote or unknown client.
fn uid(client: &Client) -> Option<i64> {
    let Identity { base, uid, .. } = client.identity;
    (base != 0 && uid != u32::MAX).then_some(uid.into())
}

/// Converts and saturates: an i64 holds nearly 300 years in nanoseconds, but a damaged trace may contain longer times.
fn long(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn unix_ns(header: &Header, at: Time) -> i64 {
    long(at.0).saturating_add(header.realtime_offset_ns)
}

/// The day that contains a time, and the start of the next day.
fn day(header: &Header, at: Time) -> (Day, Time) {
    const DAY_NS: i64 = 86_400_000_000_000;
    let now_ns = unix_ns(header, at);
    let left_ns = DAY_NS - now_ns.rem_euclid(DAY_NS);
    (Day::of_unix_ns(now_ns), at.after(left_ns.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::{Row, RowAccessor};
    use std::fs::{self, File};
    use std::path::PathBuf;
    use xqos_core::{ClientId, Service};
    use xqos_testkit::Folder;

    const SECOND_NS: u64 = 1_000_000_000;
    const MIDNIGHT: Time = Time(60 * SECOND_NS);

    fn served(client: u16, start: Time, ns: u64) -> Event {
        let service = Service::new(ClientId(client), start, start.after(ns));
        let what = Entry::Fact(Fact::Served(Service { requests: 2, last_request: 73, bytes: 8, ..service }));
        Event { at: service.end, what }
    }

    /// A trace that starts a minute before midnight. Client 2 waits for client 1 before and after midnight.
    fn events() -> Vec<Event> {
        let at = |at, what| Event { at, what };
        let mut events = Vec::new();
        for (id, name) in [(1, b"gimp\0\0\0\0\0\0\0\0\0\0\0\0"), (2, b"xterm\0\0\0\0\0\0\0\0\0\0\0")] {
            let client = ClientId(id);
            events.push(at(Time(1), Entry::Fact(Fact::Connected { client, descriptor: id.into() })));
            events.push(at(Time(1), Entry::Identity { client, pid: 40, base: 1, uid: 1000 + u32::from(id) }));
            events.push(at(Time(1), Entry::Name { client, part: 0, bytes: *name }));
        }
        for begin in [Time(SECOND_NS), MIDNIGHT] {
            for client in [1, 2].map(ClientId) {
                events.push(at(begin, Entry::Fact(Fact::Arrived { client })));
            }
            events.extend([served(1, begin, 5_000), served(2, begin.after(5_000), 1_000)]);
            let (client, request, by) = (ClientId(1), 70, ClientId(2));
            events.push(at(begin.after(7_000), Entry::Cut { client, request, done: 1, parts: 3 }));
            events.push(at(begin.after(8_000), Entry::Finished { client, request, by, ns: 900 }));
        }
        events
    }

    fn export(folder: &Folder) -> Result<Written, Error> {
        let realtime_offset_ns = 86_400 * SECOND_NS as i64 - MIDNIGHT.0 as i64;
        let header = Header { host: "ts01".into(), display: ":7".into(), realtime_offset_ns, ..Header::default() };
        let target = TraceTables { folder: &folder.path, host: None, session: Some("one") };
        write(&header, events().into_iter(), &Names::default(), &target)
    }

    fn written(name: &str) -> (Folder, Written) {
        let folder = Folder::new(name);
        let written = export(&folder).unwrap();
        (folder, written)
    }

    fn rows(folder: &Folder, table: &str, day: &str) -> Vec<Row> {
        let path = folder.path.join(format!("{table}/host=ts01/display=%3A7/day={day}/one.parquet"));
        let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
        reader.get_row_iter(None).unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn a_table_that_cannot_be_written_leaves_no_other_table() {
        fn files(folder: &Path) -> Vec<PathBuf> {
            let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
            paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
        }
        let folder = Folder::new("refused");
        // The last table needs a folder of this name.
        fs::write(folder.path.join("sessions"), "").unwrap();
        export(&folder).unwrap_err();
        assert_eq!(files(&folder.path), [folder.path.join("sessions")]);
    }

    #[test]
    fn each_day_has_its_own_figures() {
        let (folder, written) = written("days");
        assert_eq!((written.files, written.rows), (7, 1 + 2 * (2 + 2 + 1)));
        for day in ["1970-01-01", "1970-01-02"] {
            let clients = rows(&folder, "clients", day);
            let times: Vec<i64> = clients.iter().map(|row| row.get_long(5).unwrap()).collect();
            assert_eq!(times, [5_000, 1_000], "{day}");
            assert_eq!(clients[1].get_long(10).unwrap(), 5_000, "its waiting time");
            let cut = |row: &Row| [18, 19, 20].map(|column| row.get_long(column).unwrap());
            assert_eq!([cut(&clients[0]), cut(&clients[1])], [[1, 1, 900], [0, 0, 0]], "cuts, early rests, their time");
        }
        let session = &rows(&folder, "sessions", "1970-01-01")[0];
        assert_eq!(session.get_long(6).unwrap(), events().len() as i64);
    }

    #[test]
    fn a_wait_names_the_client_that_caused_it() {
        let (folder, _) = written("waits");
        let bursts = rows(&folder, "bursts", "1970-01-02");
        let late = &bursts[1];
        assert_eq!((late.get_string(3).unwrap().as_str(), late.get_long(4).unwrap()), ("xterm", 1002));
        let lengths = [6, 7, 8].map(|column| late.get_long(column).unwrap());
        assert_eq!(lengths, [6_000, 1_000, 5_000], "response, served, waited");
        let waits = rows(&folder, "waits", "1970-01-02");
        assert_eq!(waits[0].get_long(1).unwrap(), late.get_long(1).unwrap(), "the wait refers to this burst");
        let found = [4, 7, 9].map(|column| waits[0].get_string(column).unwrap().as_str());
        assert_eq!(found, ["client", "gimp", "GetImage"]);
        assert_eq!((waits[0].get_long(5).unwrap(), waits[0].get_long(8).unwrap()), (5_000, 1001));
    }
}
