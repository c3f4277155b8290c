// SPDX-License-Identifier: MIT
//! Parses the events of `xqos cap --start-on` and `--stop-on`.

use xqos_text::quantity::Micros;
use xqos_wire::recording::trigger::{Start, Stop, TriggerEvent};

/// Events without and with a value.
const EVENTS: &str = "window, window=NAME, key, button, drag, selection, message=NAME, wait=100ms, signal";

pub fn start(text: &str) -> Result<Start, String> {
    match event(text)? {
        _ if text == "now" => Ok(Start::Now),
        Some(event) => Ok(Start::On(event)),
        None => Err(format!("'{text}' is not an event to start on: write now, {EVENTS}")),
    }
}

pub fn stop(text: &str) -> Result<Stop, String> {
    let ns = |time: &str| time.parse().map(|time: Micros| time.ns());
    match (text.split_once('='), event(text)?) {
        (Some(("quiet", time)), _) => Ok(Stop::Quiet { ns: ns(time)? }),
        (Some(("time", time)), _) => Ok(Stop::After { ns: ns(time)? }),
        (_, Some(event)) => Ok(Stop::On(event)),
        _ => Err(format!("'{text}' is not an event to stop on: write quiet=2s, time=10s, {EVENTS}")),
    }
}

/// An event that can start and stop a recording; `None` if there is none with this name.
fn event(text: &str) -> Result<Option<TriggerEvent>, String> {
    // A shell takes `wait>100ms` as a redirection unless it is quoted.
    let (name, value) = text.split_once(['=', '>']).map_or((text, None), |(name, value)| (name, Some(value)));
    let plain = match name {
        "key" => TriggerEvent::Key,
        "button" => TriggerEvent::Button,
        "drag" => TriggerEvent::Drag,
        "window" => TriggerEvent::Window(None),
        "selection" => TriggerEvent::Selection,
        "signal" => TriggerEvent::Signal,
        "message" | "wait" => return with_value(name, value.unwrap_or_default()).map(Some),
        _ => return Ok(None),
    };
    match (plain, value) {
        (TriggerEvent::Window(_), Some("")) => Err("window= has no name: write window, or window=xterm".to_owned()),
        (TriggerEvent::Window(_), Some(name)) => Ok(Some(TriggerEvent::Window(Some(name.to_owned())))),
        (plain, None) => Ok(Some(plain)),
        (_, Some(_)) => Err(format!("{name} has no value: write {name} alone")),
    }
}

fn with_value(name: &str, value: &str) -> Result<TriggerEvent, String> {
    if name == "message" {
        return value.parse().map(TriggerEvent::Message);
    }
    value.parse().map(|time: Micros| TriggerEvent::Wait { ns: time.ns() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_parsed() {
        let window = |name: &str| TriggerEvent::Window(Some(name.to_owned()));
        for (text, event) in [
            ("key", TriggerEvent::Key),
            ("button", TriggerEvent::Button),
            ("drag", TriggerEvent::Drag),
            ("window", TriggerEvent::Window(None)),
            ("window=a=b>c", window("a=b>c")),
            ("selection", TriggerEvent::Selection),
            ("message=QueryExtension", TriggerEvent::Message("QueryExtension".parse().unwrap())),
            ("wait=100ms", TriggerEvent::Wait { ns: 100_000_000 }),
            ("wait>2s", TriggerEvent::Wait { ns: 2_000_000_000 }),
            ("signal", TriggerEvent::Signal),
        ] {
            assert_eq!(start(text), Ok(Start::On(event.clone())), "{text}");
            assert_eq!(stop(text), Ok(Stop::On(event)), "{text}");
        }
        assert_eq!(start("now"), Ok(Start::Now));
        assert_eq!(stop("quiet=2s"), Ok(Stop::Quiet { ns: 2_000_000_000 }));
        assert_eq!(stop("time=1ms"), Ok(Stop::After { ns: 1_000_000 }));
    }

    #[test]
    fn other_text_is_refused_with_advice() {
        for (text, words) in [
            ("", "write "),
            ("=", "write "),
            (">", "write "),
            ("tea", "window=NAME"),
            ("KEY", "window=NAME"),
            ("key=a", "write key alone"),
            ("signal>USR1", "write signal alone"),
            ("window=", "write window"),
            ("message", "such as CreateWindow"),
            ("message=CreateWindo", "such as CreateWindow"),
            ("wait", "such as"),
            ("wait>", "such as"),
            ("wait=5", "unit"),
            ("wait=-1s", "such as"),
            ("wait=99999999999999h", "too long"),
            ("quiet", "write "),
            ("time", "write "),
            ("\u{1f980}=\u{1f980}", "write "),
        ] {
            for error in [start(text).unwrap_err(), stop(text).unwrap_err()] {
                assert!(error.contains(words) && error.lines().count() == 1, "{text}: {error}");
            }
        }
        assert!(stop("now").is_err_and(|error| error.contains("quiet=2s")));
        assert!(stop("quiet=2").is_err_and(|error| error.contains("unit")));
        assert!(start("quiet=2s").is_err_and(|error| error.contains("to start on")));
    }
}
