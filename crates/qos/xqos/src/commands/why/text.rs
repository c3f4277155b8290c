// SPDX-License-Identifier: MIT
//! The explanation in words: a paragraph, and what to do, with the commands to type.

use std::fmt::Write;
use xqos_core::{PolicyKind, Time};
use xqos_text::time::{self, of_ns};
use xqos_text::width::wrapped;
use xqos_trace::file::Header;
use xqos_trace::show::role_name;
use xqos_trace::why::{Cause, Diagnosis, Party, Ran, Served, Wait};

/// Width of the paragraph.
const COLUMNS: usize = 80;
/// Clients that are named; the others are counted.
const NAMED: usize = 3;

/// Advice: a sentence and a command.
type Advice = (String, String);

/// The whole text.
pub fn explained(diagnosis: &Diagnosis, header: &Header, limit_ns: u64) -> String {
    let server = format!("the X server {}", header.display);
    let mut text = paragraph_of(&paragraph(diagnosis, header, &server, limit_ns));
    let advice = diagnosis.worst.as_ref().filter(|(wait, _)| wait.ns > limit_ns);
    let Some((wait, cause)) = advice else { return text };
    text += "\nWhat to do:\n";
    for (sentence, command) in advice_for(wait, cause, diagnosis) {
        let _ = write!(text, "\n{}    {command}\n", paragraph_of(&sentence));
    }
    text
}

fn paragraph(diagnosis: &Diagnosis, header: &Header, server: &str, limit_ns: u64) -> String {
    let span = of_ns(diagnosis.span_ns);
    let Some((wait, cause)) = &diagnosis.worst else {
        return format!("No client waited for {server} in the last {span}.{}", elsewhere(diagnosis));
    };
    let mut text = String::new();
    if wait.ns <= limit_ns {
        text += &format!("No client waited longer than {} for {server} in the last {span}. ", of_ns(limit_ns));
    } else if wait.is_busy {
        text += "Only busy clients waited long: they delayed each other. ";
    }
    text += &format!("{} {}", waited(wait, cause, server, &clock(wait.from, header)), reason(wait, cause, diagnosis));
    if !matches!(cause, Cause::SlowLink { .. }) {
        text += &meanwhile(&diagnosis.served, wait.ns);
        text += &processor(diagnosis, cause);
    }
    if wait.ns <= limit_ns {
        text += &elsewhere(diagnosis);
    }
    if diagnosis.lost > 0 {
        text += &format!(" {} records are missing from this trace.", diagnosis.lost);
    }
    text
}

fn waited(wait: &Wait, cause: &Cause, server: &str, at: &str) -> String {
    let time = of_ns(wait.ns);
    let who = match wait.who.as_slice() {
        [] if matches!(cause, Cause::NoProcessor { .. }) => {
            return format!("{} had no processor for {time}, from {at} on.", capital(server));
        }
        [] => return format!("{} served no other client for {time}, from {at} on.", capital(server)),
        [one] => one.name.clone(),
        [first, rest @ ..] => format!("{} and {}", first.name, counted(rest.len(), "other client")),
    };
    match cause {
        Cause::SlowLink { .. } => {
            format!("{who} waited {time} for its own link rather than for {server}, from {at} on.")
        }
        _ if wait.is_at_most => format!("{who} waited for {server}, for up to {time}, from {at} on."),
        _ => format!("{who} waited {time} for {server}, from {at} on."),
    }
}

fn reason(wait: &Wait, cause: &Cause, diagnosis: &Diagnosis) -> String {
    match cause {
        Cause::LongRequest { who, request, ns } if request.is_empty() => {
            format!("The server has executed one request of {} for {} and has not finished it.", who.name, of_ns(*ns))
        }
        Cause::LongRequest { who, request, ns } => {
            format!("The reason is one long request: {request} of {} took {}.", who.name, of_ns(*ns))
        }
        Cause::Grab { who, ns } => format!(
            "The reason is a server grab: {} held it for {}, and a server serves no other client during a grab.",
            who.name,
            of_ns(*ns)
        ),
        Cause::Busy { clients, ns } => {
            let others = counted(*clients, "other client");
            format!("The reason is many requests: the server was busy with {others} for {} of this time.", of_ns(*ns))
        }
        Cause::NoProcessor { ns, ran } => {
            let ran: Vec<&Ran> = ran.iter().filter(|one| one.ns >= ns / 20).collect();
            let others_ns = ran.iter().fold(*ns, |left, one| left.saturating_sub(one.ns));
            let others = (others_ns > ns / 10 && !ran.is_empty()).then(|| format!("others for {}", of_ns(others_ns)));
            let ran: Vec<String> = ran.into_iter().map(ran_for).chain(others).collect();
            let instead = if ran.is_empty() { String::new() } else { format!(" It ran {} instead.", listed(&ran)) };
            let is_said = wait.who.is_empty() && wait.ns == *ns;
            let time = if is_said { String::new() } else { format!(" for {}", of_ns(*ns)) };
            format!("The reason is the processor: the kernel did not run the server{time}.{instead}")
        }
        Cause::SlowLink { round_trips, median_ns } => format!(
            "It made {round_trips} round trips, one after another. Each time {} passed between the server's reply \
             and the next request (median). The server itself replied without delay.",
            of_ns(*median_ns)
        ),
        Cause::HeldBack { ns } => {
            format!("The reason is its own hard reservation, whose budget was used up for {} of this time.", of_ns(*ns))
        }
        Cause::Server { ns } => {
            let or = if diagnosis.kernel { "" } else { ", or had no processor," };
            let waits = if wait.who.len() > 1 { "their" } else { "its" };
            format!(
                "The server did its own work{or} for {} of {waits} wait: input, the screen, or clients that connect.",
                of_ns(*ns)
            )
        }
    }
}

fn ran_for(ran: &Ran) -> String {
    let priority = match ran.priority {
        ..0 => ", which has a deadline reservation,".to_owned(),
        priority @ 0..100 => format!(", which has real-time priority {},", 99 - priority),
        120 => String::new(),
        priority => format!(" (nice {})", priority - 120),
    };
    format!("{}{priority} for {}", ran.thread.name, of_ns(ran.ns))
}

/// Names the clients that were served for at least a hundredth of the wait.
fn meanwhile(served: &[Served], wait_ns: u64) -> String {
    let served: Vec<&Served> = served.iter().filter(|one| one.ns >= wait_ns / 100).collect();
    if served.is_empty() {
        return String::new();
    }
    let one = |one: &Served| {
        let mostly = if one.request.is_empty() { String::new() } else { format!(", mostly {}", one.request) };
        format!("{} for {} ({}{mostly})", one.who.name, of_ns(one.ns), counted(one.requests as usize, "request"))
    };
    let mut named: Vec<String> = served.iter().take(NAMED).copied().map(one).collect();
    if served.len() > NAMED {
        named.push(counted(served.len() - NAMED, "other client"));
    }
    format!(" Meanwhile it served {}.", listed(&named))
}

fn processor(diagnosis: &Diagnosis, cause: &Cause) -> String {
    let is_named = matches!(cause, Cause::NoProcessor { .. });
    match (diagnosis.absent_ns, diagnosis.kernel) {
        _ if is_named => String::new(),
        (0, true) => " As far as the trace shows, the server had the processor all the time.".to_owned(),
        (0, false) => String::new(),
        (ns, _) => format!(" All times are elapsed time, of which the server had no processor for {}.", of_ns(ns)),
    }
}

fn elsewhere(diagnosis: &Diagnosis) -> String {
    let more = if diagnosis.kernel { "" } else { " As root, this command also shows what the processors ran." };
    format!(
        " If a program stuttered, the reason is probably outside of the X server: the program itself, its disk or its \
         network.{more}"
    )
}

fn advice_for(wait: &Wait, cause: &Cause, diagnosis: &Diagnosis) -> Vec<Advice> {
    match cause {
        Cause::LongRequest { who, .. } => vec![
            advise("If `xqos policy` says that long requests are not cut, turn cutting on:", "xqos policy --cut on"),
            advise(
                &format!("See which requests of {} are long, and report it to its authors:", who.name),
                "xqos trace record --level requests --time 10s requests.trace",
            ),
        ],
        Cause::Grab { who, .. } => {
            let end = format!("No scheduler can serve others during a grab. If it happens again, end {}:", who.name);
            let end = || (who.pid > 0).then(|| advise(&end, &format!("kill {}", who.pid)));
            // Killing it would lose the windows or the session.
            let is_needed = role_name(who.role).map(|role| {
                let is = format!("{} is the {role}. Record its requests during the grab, for its authors:", who.name);
                advise(&is, "xqos trace record --level requests --time 10s requests.trace")
            });
            let see = advise("See which client holds the grab while it lasts:", "xqos list");
            is_needed.or_else(end).into_iter().chain([see]).collect()
        }
        Cause::Busy { .. } => among_busy(wait, diagnosis),
        Cause::NoProcessor { ran, .. } => vec![for_processor(ran, diagnosis.kernel)],
        Cause::SlowLink { .. } => vec![
            advise(
                "Let a proxy on the program's machine answer most requests (replace HOST and PROGRAM):",
                "xqos ssh HOST PROGRAM",
            ),
            advise("Capture its messages, for `xqos analyse` and `xqos plot`:", "xqos cap -o link.pcapng -- PROGRAM"),
        ],
        Cause::HeldBack { .. } => wait
            .who
            .iter()
            .map(|one| advise("Remove the reservation, or reserve more:", &format!("xqos release {}", selector(one))))
            .collect(),
        Cause::Server { .. } if diagnosis.kernel => vec![advise("See what the server reports:", "xqos doctor")],
        Cause::Server { .. } => vec![advise("As root, this command shows which of the two it was:", "sudo xqos why")],
    }
}

fn among_busy(wait: &Wait, diagnosis: &Diagnosis) -> Vec<Advice> {
    let reserve = wait.who.first().filter(|_| !wait.is_busy).map(|one| {
        let sentence = format!("Measure and reserve the server time that {} needs:", one.name);
        advise(&sentence, &format!("xqos reserve auto {}", selector(one)))
    });
    let weigh = diagnosis.served.first().map(|one| {
        let sentence = format!("Serve {} less while others wait:", one.who.name);
        advise(&sentence, &format!("xqos weight {} 0.25", selector(&one.who)))
    });
    let policy = (diagnosis.policy != Some(PolicyKind::Fair))
        .then(|| advise("Serve the client first that has used the server least:", "xqos policy fair"));
    let rule = advise("Make such a setting permanent with a rule:", "xqos rules --help");
    [policy, reserve, weigh, Some(rule)].into_iter().flatten().collect()
}

fn for_processor(ran: &[Ran], is_kernel_known: bool) -> Advice {
    match ran.first() {
        Some(Ran { thread, priority: ..100, .. }) => {
            let command = format!("sudo chrt --other --pid 0 {}", thread.pid);
            advise(&format!("Give {} a normal priority:", thread.name), &command)
        }
        None if !is_kernel_known => {
            advise("As root, this command names the program that took the processor:", "sudo xqos why")
        }
        _ => advise(
            "Raise the server's priority while programs redraw and while it serves reserved clients:",
            "sudo xqos boost",
        ),
    }
}

fn advise(sentence: &str, command: &str) -> Advice {
    (sentence.to_owned(), command.to_owned())
}

/// Options that select a client.
fn selector(party: &Party) -> String {
    if party.pid > 0 { format!("--pid {}", party.pid) } else { format!("--client {:#x}", party.base) }
}

/// The time of day: `12:03:04.512`.
fn clock(at: Time, header: &Header) -> String {
    let unix_ns = i128::from(at.0) + i128::from(header.realtime_offset_ns);
    time::local(i64::try_from(unix_ns).unwrap_or(i64::MAX), "%H:%M:%S%.3f")
}

fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

fn listed(all: &[String]) -> String {
    match all {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn paragraph_of(text: &str) -> String {
    wrapped(text, COLUMNS).join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use xqos_core::Role;

    const MS: u64 = 1_000_000;

    fn party(name: &str, pid: u32) -> Party {
        Party { name: format!("{name} ({pid})"), pid, base: 0x40_0000, ..Party::default() }
    }

    fn diagnosis(cause: Cause) -> Diagnosis {
        let who = vec![party("mpv", 200)];
        let (from, to) = (Time(1000 * MS), Time(1300 * MS));
        let wait = Wait { who, from, to, ns: 300 * MS, is_busy: false, is_at_most: false };
        let served = Served { who: party("x11perf", 100), ns: 20 * MS, requests: 1, request: "GetImage".to_owned() };
        Diagnosis { worst: Some((wait, cause)), served: vec![served; 5], span_ns: 10_000 * MS, ..Diagnosis::default() }
    }

    fn causes() -> Vec<Cause> {
        let (who, request, ns) = (party("x11perf", 100), "GetImage".to_owned(), 290 * MS);
        let hog = |priority| vec![Ran { thread: party("hog", 812), ns, priority }];
        vec![
            Cause::LongRequest { who: who.clone(), request, ns },
            Cause::LongRequest { who: who.clone(), request: String::new(), ns },
            Cause::Grab { who, ns },
            Cause::Busy { clients: 12, ns },
            Cause::NoProcessor { ns, ran: hog(49) },
            Cause::NoProcessor { ns, ran: hog(130) },
            Cause::NoProcessor { ns, ran: vec![] },
            Cause::SlowLink { round_trips: 14, median_ns: 199 * MS },
            Cause::HeldBack { ns },
            Cause::Server { ns },
        ]
    }

    /// The explanation on one line.
    fn text(diagnosis: &Diagnosis) -> String {
        let header = Header { display: ":7".to_owned(), ..Header::default() };
        let text = explained(diagnosis, &header, 100 * MS);
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn each_cause_has_its_sentence() {
        let expected = [
            "mpv (200) waited 300 ms for the X server :7, from",
            "has executed one request of x11perf (100) for 290 ms and has not finished it",
            "The reason is a server grab: x11perf (100) held it for 290 ms",
            "The reason is many requests: the server was busy with 12 other clients for 290 ms",
            "It ran hog (812), which has real-time priority 50, for 290 ms instead.",
            "It ran hog (812) (nice 10) for 290 ms instead.",
            "the kernel did not run the server for 290 ms. Meanwhile",
            "mpv (200) waited 300 ms for its own link rather than for the X server :7, from",
            "whose budget was used up for 290 ms",
            "The server did its own work, or had no processor, for 290 ms of its wait",
        ];
        for (cause, expected) in causes().into_iter().zip(expected) {
            let text = text(&diagnosis(cause));
            assert!(text.contains(expected), "'{expected}' is missing: {text}");
            assert!(text.contains("What to do:"), "{text}");
        }
    }

    #[test]
    fn no_advice_says_to_kill_a_window_manager() {
        let who = party("openbox", 100);
        assert!(text(&diagnosis(Cause::Grab { who: who.clone(), ns: 290 * MS })).contains("kill 100"));
        let who = Party { role: Role { window_manager: true, compositor: false }, ..who };
        let text = text(&diagnosis(Cause::Grab { who, ns: 290 * MS }));
        assert!(text.contains("openbox (100) is the window manager.") && !text.contains("kill"), "{text}");
    }

    #[test]
    fn the_policy_in_effect_is_not_advised() {
        let busy = diagnosis(Cause::Busy { clients: 12, ns: 290 * MS });
        assert!(text(&busy).contains("xqos policy fair"));
        assert!(!text(&Diagnosis { policy: Some(PolicyKind::Fair), ..busy }).contains("xqos policy fair"));
    }

    #[test]
    fn time_without_a_processor_is_part_of_all_times() {
        let busy = diagnosis(Cause::Busy { clients: 12, ns: 290 * MS });
        let text = text(&Diagnosis { absent_ns: 163 * MS, ..busy });
        assert!(
            text.contains("All times are elapsed time, of which the server had no processor for 163 ms."),
            "{text}"
        );
    }

    #[test]
    fn every_advice_is_a_command_that_this_program_takes() {
        for cause in causes() {
            let diagnosis = diagnosis(cause);
            let (wait, cause) = diagnosis.worst.as_ref().unwrap();
            for (_, command) in advice_for(wait, cause, &diagnosis) {
                let words: Vec<_> = command.trim_start_matches("sudo ").split(' ').collect();
                let is_own = words[0] == "xqos" && !["ssh", "cap"].contains(&words[1]) && words[2..] != ["--help"];
                let parsed = crate::CommandLine::try_parse_from(&words).map(drop);
                assert!(!is_own || parsed.is_ok(), "{command}: {parsed:?}");
            }
        }
    }

    #[test]
    fn a_short_wait_or_no_wait_gives_no_advice() {
        let mut short = diagnosis(Cause::Server { ns: MS });
        short.worst.as_mut().unwrap().0.ns = 3 * MS;
        let short = text(&short);
        let begin = "No client waited longer than 100 ms for the X server :7 in the last 10.0 s. mpv (200) waited";
        assert!(short.starts_with(begin) && !short.contains("What to do"), "{short}");
        assert!(text(&Diagnosis::default()).starts_with("No client waited for the X server :7 in the last 0."));
    }
}
