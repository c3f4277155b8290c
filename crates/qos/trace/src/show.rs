// SPDX-License-Identifier: MIT
//! Records as text.

#[cfg(test)]
mod tests;

use crate::model::{Burst, Cause, Model, text};
use crate::names::Names;
use xqos_abi::trace::{Entry, Event, Reason};
use xqos_core::{Fact, GroupId, Holder, Mode, Pacing, Parameters, Reservation, Role, Service, Supply, Time};
use xqos_text::time::of_ns;
use xqos_text::width::{Align, padded};

#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Part of a program's name, or a pid.
    pub client: Option<String>,
    /// Kinds of records, as named by [`Entry::name`]; if empty, all kinds except the scheduler's state.
    pub kinds: Vec<String>,
    /// Time since the start of the trace.
    pub from_ns: u64,
    pub to_ns: Option<u64>,
}

impl Filter {
    pub fn matches(&self, event: &Event, model: &Model) -> bool {
        let since = model.began.map_or(0, |began| event.at.since(began));
        if since < self.from_ns || self.to_ns.is_some_and(|to| since > to) {
            return false;
        }
        let kind = event.what.name();
        let is_wanted = if self.kinds.is_empty() { kind != "state" } else { self.kinds.iter().any(|one| one == kind) };
        let is_of_client = match &self.client {
            None => true,
            Some(wanted) => event.what.client().and_then(|id| model.key(id)).is_some_and(|key| {
                let identity = &model.clients()[key].identity;
                identity.program.contains(wanted.as_str()) || wanted.parse() == Ok(identity.pid)
            }),
        };
        is_wanted && is_of_client
    }
}

/// A record as a line: seconds since the start, kind, client and details.
pub fn line(event: &Event, model: &Model, names: &Names) -> String {
    let seconds = model.since_start_ns(event.at) / 1e9;
    let client = event.what.client().map(|id| match model.key(id) {
        Some(key) => model.name(key),
        None => format!("client {}", id.0),
    });
    let details = details(event, names);
    let client = padded(&client.unwrap_or_default(), 24, Align::Left);
    format!("{seconds:14.6}  {:<12}  {client}  {details}", event.what.name()).trim_end().to_owned()
}

/// The role of a client in words; `None` if it has no role.
pub fn role_name(role: Role) -> Option<&'static str> {
    match (role.compositor, role.window_manager) {
        (true, true) => Some("window manager and compositor"),
        (true, false) => Some("compositor"),
        (false, true) => Some("window manager"),
        (false, false) => None,
    }
}

fn in_(at: Time, from: Time) -> String {
    if at == Time::NEVER { "never".to_owned() } else { format!("in {}", of_ns(at.since(from))) }
}

fn details(event: &Event, names: &Names) -> String {
    let at = event.at;
    match event.what {
        Entry::Fact(fact) | Entry::Refused(fact) => fact_details(&fact, event.what == Entry::Refused(fact), names),
        Entry::Paced { until, .. } => format!("waits for others to redraw, ends {} at the latest", in_(until, at)),
        Entry::Begin { level, server_pid, .. } => format!("level {}, server pid {server_pid}", level.name()),
        Entry::Identity { pid, base, uid, .. } => format!("pid {pid}, base {base:#x}, uid {uid}"),
        Entry::Dispatch { mode, reason, until, requests, .. } => {
            let reason = match reason {
                Reason::Stock => "the server's choice",
                Reason::Grab => "server grab",
                Reason::Deadline => "earliest deadline",
                Reason::Policy => "first under the policy",
                Reason::Alone => "the only ready client",
                Reason::Desktop => "compositor or window manager",
            };
            let paid = if mode == Mode::Reserved { ", on its reservation" } else { "" };
            let most = if requests > 0 { format!(", at most {requests} requests") } else { String::new() };
            let end = if until == Time::NEVER { String::new() } else { format!(", ends {}", in_(until, at)) };
            format!("{reason}{paid}{end}{most}")
        }
        Entry::Processor { ns, .. } => format!("{} in the slice that ends here", of_ns(ns)),
        Entry::Budget { kind, depleted, left_ns, deadline, .. } => {
            let sign = if left_ns < 0 { "-" } else { "" };
            let state = if depleted { ", depleted" } else { "" };
            let kind = kind.name();
            format!("{kind}, {sign}{} left, deadline {}{state}", of_ns(left_ns.unsigned_abs()), in_(deadline, at))
        }
        Entry::Cut { request, done, parts, .. } => {
            format!("{}, interrupted after {done} of {parts} parts", names.of(request))
        }
        Entry::Finished { request, by, ns, .. } => {
            let (name, by) = (names.of(request), by.0);
            format!("{name}, rest executed in {} for client {by}", of_ns(ns))
        }
        Entry::Request { request, bytes, ns, .. } => format!("{}, {bytes} bytes, {}", names.of(request), of_ns(ns)),
        Entry::Lost { records } => format!("{records} records are missing"),
        what => kernel_details(&what),
    }
}

/// Details of a fact about a client, or of a setting.
fn fact_details(fact: &Fact, is_refused: bool, names: &Names) -> String {
    match *fact {
        Fact::Exposed { cause: Some(cause), .. } => format!("by client {}", cause.0),
        Fact::Role { role, .. } => role_name(role).unwrap_or("none").to_owned(),
        Fact::WorksFor { payer, .. } => format!("has work to do for client {}", payer.0),
        Fact::CausedWork { .. } => "caused work for a compositor or window manager after a rest".to_owned(),
        Fact::Served(Service { start, end, requests, last_request, ended_early, .. }) => {
            let early = if ended_early { ", ended early" } else { "" };
            let plural = if requests == 1 { "" } else { "s" };
            let last = if requests > 0 { format!(", last {}", names.of(last_request)) } else { String::new() };
            format!("{}, {requests} request{plural}{last}{early}", of_ns(end.since(start)))
        }
        Fact::Overran { ns } => format!("by {} of processor time", of_ns(ns)),
        Fact::Contention { is_on: true } => "begins".to_owned(),
        Fact::Contention { is_on: false } => "ends: the server chooses".to_owned(),
        Fact::Reserve { holder: Holder::Client(_), reservation: Reservation { budget_ns, period_ns, kind } } => {
            let verdict = if is_refused { "refused" } else { "admitted" };
            format!("{}, {} in {}, {verdict}", kind.name(), of_ns(budget_ns), of_ns(period_ns))
        }
        Fact::Reserve { holder: Holder::Group(group), reservation: Reservation { budget_ns, period_ns, kind } } => {
            let verdict = if is_refused { ", not admitted" } else { "" };
            format!("{} gets {} in {}, {}{verdict}", group.0, of_ns(budget_ns), of_ns(period_ns), kind.name())
        }
        _ => setting_details(fact),
    }
}

/// Details of a setting of the server, a client or a group.
fn setting_details(fact: &Fact) -> String {
    let percent = |ppm| format!("{:.0} %", f64::from(ppm) / 1e4);
    match *fact {
        Fact::Pacing(Pacing { limit_ns: 0, .. }) => "off".to_owned(),
        Fact::Pacing(Pacing { limit_ns, floor_ns }) => {
            format!("waits of at most {} us, a turn at least every {} us", limit_ns / 1000, floor_ns / 1000)
        }
        Fact::DesktopShare { ppm: 0 } => "off".to_owned(),
        Fact::DesktopShare { ppm } => format!("at most {} while other clients wait", percent(ppm)),
        Fact::Supply(Supply { period_ns: 0, .. }) => "no kernel reservation".to_owned(),
        Fact::Supply(Supply { budget_ns, period_ns }) => format!("{} in {}", of_ns(budget_ns), of_ns(period_ns)),
        Fact::Policy(kind) => kind.name().to_owned(),
        Fact::Parameters(parameters) => {
            let Parameters { slice_ns, timer_interval_ns, maximum_slice_ns, max_utilization_ppm, blocking_ns } =
                parameters;
            let [slice, interval, maximum, blocking] =
                [slice_ns, timer_interval_ns, maximum_slice_ns, blocking_ns].map(|ns| ns / 1000);
            let utilization = f64::from(max_utilization_ppm) / 1e6;
            format!(
                "slice {slice} us, timer interval {interval} us, maximum slice {maximum} us, \
                 utilization {utilization}, blocking {blocking} us"
            )
        }
        Fact::SyncPriority { priority, .. } | Fact::FixedPriority { priority, .. } => priority.to_string(),
        Fact::Weight { holder: Holder::Client(_), weight } => format!("{}", f64::from(weight) / 100.0),
        Fact::Slice { us, .. } => format!("slices of at most {us} us (0: the default)"),
        Fact::Group { group: GroupId::NONE, .. } => "none".to_owned(),
        Fact::Group { group, .. } => group.0.to_string(),
        Fact::GroupCap { group, ppm: 0 } => format!("{} has no cap", group.0),
        Fact::GroupCap { group, ppm } => format!("{} gets at most {}", group.0, percent(ppm)),
        Fact::Release { holder: Holder::Group(group) } => format!("{} has no reservation", group.0),
        Fact::Weight { holder: Holder::Group(group), weight: 0 } => format!("{}: weight of heaviest client", group.0),
        Fact::Weight { holder: Holder::Group(group), weight } => {
            format!("{} has weight {}", group.0, f64::from(weight) / 100.0)
        }
        _ => String::new(),
    }
}

/// Details of a record of the kernel.
fn kernel_details(what: &Entry) -> String {
    let soft = |is_soft| if is_soft { "soft " } else { "" };
    match *what {
        Entry::Switch { cpu, from, to, still_runnable } => {
            format!("cpu {cpu}: {from}{} -> {to}", if still_runnable { " (runnable)" } else { "" })
        }
        Entry::Wakeup { cpu, thread } => format!("cpu {cpu}: {thread} woken"),
        Entry::Interrupt { cpu, number, is_soft, ns } => {
            format!("cpu {cpu}: {}interrupt {number}, {}", soft(is_soft), of_ns(ns))
        }
        Entry::InterruptName { number, is_soft, bytes } => {
            format!("{}interrupt {number} is {}", soft(is_soft), text(&bytes))
        }
        Entry::ThreadName { thread, bytes } => format!("{thread} is {}", text(&bytes)),
        Entry::Thread { thread, process } => format!("{thread} belongs to process {process}"),
        Entry::Priority { thread, priority } => format!("{thread} has priority {priority}"),
        _ => String::new(),
    }
}

/// A cause in words.
pub fn cause(cause: &Cause, model: &Model, names: &Names) -> String {
    cause_of(cause, model, names, |key| model.name(key))
}

/// A cause in words, with clients named by `name`.
pub fn cause_of(cause: &Cause, model: &Model, names: &Names, name: impl Fn(usize) -> String) -> String {
    match cause {
        Cause::Client { key, request: 0, .. } => format!("behind {}", name(*key)),
        Cause::Client { key, request, long: true } => {
            format!("behind one long {} of {}", names.of(*request), name(*key))
        }
        Cause::Client { key, request, .. } => format!("behind {} {}", name(*key), names.of(*request)),
        Cause::Grab { key } => format!("while {} held the server grab", name(*key)),
        Cause::Kernel => "while the server had no processor".to_owned(),
        Cause::Server if model.kernel => "for the server's own work".to_owned(),
        Cause::Server => "for the server's own work or a processor (record with --kernel to distinguish)".to_owned(),
        Cause::HeldBack => "held back by its used-up budget".to_owned(),
    }
}

/// A burst in words, with causes that add up to the whole wait: "mpv (12) waited 41.00 ms: 38.00 ms behind x11perf (9)
/// GetImage, 3.00 ms for the server's own work". Causes after the first three are summed up.
pub fn burst(burst: &Burst, model: &Model, names: &Names) -> String {
    const NAMED: usize = 3;
    let named = burst.causes.iter().take(NAMED);
    let others_ns = named.clone().fold(burst.waited_ns, |left, (_, ns)| left.saturating_sub(*ns));
    let mut causes: Vec<String> =
        named.map(|(why, ns)| format!("{} {}", of_ns(*ns), cause(why, model, names))).collect();
    if !causes.is_empty() && others_ns > 0 {
        causes.push(format!("{} for other causes", of_ns(others_ns)));
    }
    let since = model.began.map_or(0, |began| burst.activation.since(began));
    let text = format!("{} waited {}", model.name(burst.key), of_ns(burst.waited_ns));
    let causes = if causes.is_empty() { String::new() } else { format!(": {}", causes.join(", ")) };
    format!("at {:.3} s  {text}{causes}", since as f64 / 1e9)
}
