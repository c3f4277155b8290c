// SPDX-License-Identifier: MIT
//! Parses and validates the text of a scenario file.

use super::{ClientGroup, Costs, Regime, Scenario};
use crate::generator::{Habit, Pace};
use crate::server::{ClientSettings, MAX_CLIENTS, Polling};
use crate::workload::RequestRun;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;
use xqos_core::{Parameters, Reservation, ReservationKind, Time};
use xqos_text::mistake::Mistake;

/// An hour. Longer durations are probably unit mistakes.
const MAX_LENGTH_US: f64 = 3.6e9;
/// The maximum number of requests of one kind in a burst.
const MAX_REQUESTS: u32 = 1_000_000;
/// The largest request of the core protocol.
const MAX_BYTES: u32 = 262_140;
/// Records need an opcode; its value has no effect.
const REQUEST: u32 = 1;
/// Start of the virtual clock. It is not 0, because 0 means "never" in some places.
pub(crate) const BEGAN: Time = Time(1_000_000_000);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: String,
    about: String,
    duration_ms: Spanned<u32>,
    #[serde(default)]
    warm_up_ms: Option<Spanned<u32>>,
    policies: Spanned<Policies>,
    seed: u64,
    #[serde(default)]
    server: ServerPart,
    #[serde(default)]
    costs: BTreeMap<String, Spanned<f64>>,
    client: Vec<Spanned<ClientPart>>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected \"all\" or a list of names such as [\"stock\", \"fair\"]")]
enum Policies {
    Word(String),
    Names(Vec<String>),
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerPart {
    #[serde(default)]
    looks: Polling,
    slice_us: Option<Spanned<Length>>,
    blocking_us: Option<Spanned<Length>>,
    max_utilization: Option<Spanned<f64>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Behaviour {
    Busy,
    Waits,
    Periodic,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClientPart {
    name: String,
    #[serde(default = "one")]
    count: u32,
    behaviour: Behaviour,
    rest_us: Option<Spanned<Length>>,
    every_us: Option<Spanned<Length>>,
    jitter_us: Option<Spanned<Length>>,
    way_us: Option<Spanned<Length>>,
    burst: Vec<Spanned<RequestsPart>>,
    #[serde(default)]
    input: bool,
    #[serde(default)]
    measured: bool,
    reservation: Option<Spanned<ReservationPart>>,
    from_ms: Option<Spanned<u32>>,
    until_ms: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestsPart {
    #[serde(default = "one")]
    requests: u32,
    each_us: Spanned<Length>,
    #[serde(default = "sixteen")]
    bytes: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReservationPart {
    budget_us: Spanned<Length>,
    period_us: Spanned<Length>,
    hard: bool,
    #[serde(default)]
    soft: SoftPart,
}

/// How a soft reservation is served beyond its budget.
#[derive(Clone, Copy, Default, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum SoftPart {
    #[default]
    BestEffort,
    Paper,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a number of microseconds, or the name of a cost in quotes")]
enum Length {
    Us(f64),
    Cost(String),
}

fn one() -> u32 {
    1
}

fn sixteen() -> u32 {
    16
}

impl Scenario {
    /// Reads a scenario. Errors refer to it as `file`. The given costs replace those in the text.
    pub fn read(file: &str, text: &str, given: &Costs) -> Result<Scenario, Mistake> {
        let mut reader = ScenarioReader { file, text, costs: BTreeMap::new() };
        let parsed: File = toml::from_str(text)
            .map_err(|error| reader.mistake(error.span().unwrap_or_default(), error.message().to_owned()))?;
        for (name, value) in &parsed.costs {
            reader.us(*value.get_ref(), value.span(), true)?;
            reader.costs.insert(name.clone(), given.get(name).copied().unwrap_or(*value.get_ref()));
        }
        reader.scenario(&parsed)
    }
}

struct ScenarioReader<'a> {
    file: &'a str,
    text: &'a str,
    costs: Costs,
}

impl ScenarioReader<'_> {
    fn mistake(&self, at: Range<usize>, what: impl Into<String>) -> Mistake {
        Mistake::at(self.file, self.text.as_bytes(), at.start, what)
    }

    fn scenario(&self, file: &File) -> Result<Scenario, Mistake> {
        let duration_ns = self.ms(&file.duration_ms)?;
        let warm_up_ns = file.warm_up_ms.as_ref().map_or(Ok(0), |warm_up| self.ms(warm_up))?;
        if warm_up_ns >= duration_ns {
            let at = file.warm_up_ms.as_ref().map_or(0..0, Spanned::span);
            return Err(self.mistake(at, "the warm-up takes the whole duration: make duration_ms longer"));
        }
        let groups = file.client.iter().map(|client| self.group(client, duration_ns, file.seed));
        let scenario = Scenario {
            title: file.title.clone(),
            about: file.about.clone(),
            regimes: self.regimes(&file.policies)?,
            duration_ns,
            warm_up_ns,
            polling: file.server.looks,
            parameters: self.parameters(&file.server)?,
            groups: groups.collect::<Result<_, _>>()?,
        };
        let clients: u64 = scenario.groups.iter().map(|group| u64::from(group.count)).sum();
        if clients == 0 || clients > MAX_CLIENTS as u64 {
            let what = format!("{clients} clients, but 1 to {MAX_CLIENTS} can be simulated: change a count");
            return Err(self.mistake(file.client.last().map_or(0..0, Spanned::span), what));
        }
        Ok(scenario)
    }

    fn regimes(&self, policies: &Spanned<Policies>) -> Result<Vec<Regime>, Mistake> {
        let names = match policies.get_ref() {
            Policies::Word(word) if word == "all" => return Ok(Regime::ALL.to_vec()),
            Policies::Word(word) => std::slice::from_ref(word),
            Policies::Names(names) => names,
        };
        let known = Regime::ALL.map(Regime::name).join(", ");
        let find = |name: &String| {
            let what = || format!("there is no policy '{name}': choose among {known}, or write \"all\"");
            Regime::from_name(name).ok_or_else(|| self.mistake(policies.span(), what()))
        };
        if names.is_empty() {
            return Err(self.mistake(policies.span(), format!("no policy is named: choose among {known}")));
        }
        names.iter().map(find).collect()
    }

    fn parameters(&self, server: &ServerPart) -> Result<Parameters, Mistake> {
        let usual = Parameters::default();
        let utilization = match &server.max_utilization {
            None => usual.max_utilization_ppm,
            Some(part) if (0.0..=1.0).contains(part.get_ref()) => (part.get_ref() * 1e6) as u32,
            Some(part) => return Err(self.mistake(part.span(), "max_utilization must be from 0 to 1, such as 0.9")),
        };
        let slice_ns = self.optional(&server.slice_us)?;
        Ok(Parameters {
            slice_ns: slice_ns.unwrap_or(usual.slice_ns),
            timer_interval_ns: slice_ns.unwrap_or(usual.timer_interval_ns),
            blocking_ns: self.optional(&server.blocking_us)?.unwrap_or(usual.blocking_ns),
            max_utilization_ppm: utilization,
            ..usual
        })
    }

    fn group(&self, spanned: &Spanned<ClientPart>, duration_ns: u64, seed: u64) -> Result<ClientGroup, Mistake> {
        let client = spanned.get_ref();
        if client.count == 0 || client.burst.is_empty() {
            let what = format!("'{}' has no clients or no requests: set count and burst", client.name);
            return Err(self.mistake(spanned.span(), what));
        }
        let from_ns = client.from_ms.as_ref().map_or(Ok(0), |from| self.ms(from))?;
        let until_ns = client.until_ms.as_ref().map_or(Ok(duration_ns), |until| self.ms(until))?;
        if from_ns >= until_ns {
            let what = format!("'{}' exits before it connects: from_ms must be less than until_ms", client.name);
            return Err(self.mistake(spanned.span(), what));
        }
        let habit = Habit {
            pace: self.pace(spanned)?,
            jitter_ns: self.optional(&client.jitter_us)?.unwrap_or(0),
            way_ns: self.optional(&client.way_us)?.unwrap_or(0),
            has_input: client.input,
            from: BEGAN.after(from_ns),
            until: BEGAN.after(until_ns),
            runs: client.burst.iter().map(|requests| self.run(requests)).collect::<Result<_, _>>()?,
            seed,
        };
        let reservation = client.reservation.as_ref().map(|reservation| self.reservation(reservation)).transpose()?;
        let (name, settings) = (client.name.clone(), ClientSettings::default());
        Ok(ClientGroup { name, count: client.count, is_measured: client.measured, reservation, settings, habit })
    }

    fn pace(&self, spanned: &Spanned<ClientPart>) -> Result<Pace, Mistake> {
        let client = spanned.get_ref();
        let refuse = |what: &str| Err(self.mistake(spanned.span(), format!("'{}' {what}", client.name)));
        match (client.behaviour, &client.rest_us, &client.every_us) {
            (Behaviour::Busy, None, None) if !client.input && !client.measured => Ok(Pace::Busy),
            (Behaviour::Busy, ..) => refuse("is busy: remove rest_us, every_us, input and measured"),
            (Behaviour::Waits, Some(rest), None) => Ok(Pace::Waits { rest_ns: self.ns(rest, false)? }),
            (Behaviour::Waits, ..) => refuse("waits: give it rest_us and remove every_us"),
            (Behaviour::Periodic, None, Some(every)) => Ok(Pace::Periodic { every_ns: self.ns(every, true)? }),
            (Behaviour::Periodic, ..) => refuse("is periodic: give it every_us and remove rest_us"),
        }
    }

    fn run(&self, spanned: &Spanned<RequestsPart>) -> Result<RequestRun, Mistake> {
        let &RequestsPart { requests, ref each_us, bytes } = spanned.get_ref();
        if !(1..=MAX_REQUESTS).contains(&requests) || !(4..=MAX_BYTES).contains(&bytes) {
            let what = format!("requests are 1 to {MAX_REQUESTS}, with 4 to {MAX_BYTES} bytes each");
            return Err(self.mistake(spanned.span(), what));
        }
        Ok(RequestRun { requests, request_ns: self.ns(each_us, true)?, request: REQUEST, bytes })
    }

    fn reservation(&self, spanned: &Spanned<ReservationPart>) -> Result<Reservation, Mistake> {
        let part = spanned.get_ref();
        let (budget_ns, period_ns) = (self.ns(&part.budget_us, true)?, self.ns(&part.period_us, true)?);
        if budget_ns > period_ns {
            return Err(self.mistake(spanned.span(), "budget_us is more than period_us: reserve less"));
        }
        let kind = match (part.hard, part.soft) {
            (true, SoftPart::Paper) => {
                return Err(self.mistake(spanned.span(), "soft = \"paper\" has no effect with hard = true: remove one"));
            }
            (false, SoftPart::Paper) => ReservationKind::SoftPaper,
            (hard, SoftPart::BestEffort) => hard.into(),
        };
        Ok(Reservation { budget_ns, period_ns, kind })
    }

    fn ms(&self, spanned: &Spanned<u32>) -> Result<u64, Mistake> {
        let ms = *spanned.get_ref();
        self.us(f64::from(ms) * 1e3, spanned.span(), false)
    }

    fn optional(&self, length: &Option<Spanned<Length>>) -> Result<Option<u64>, Mistake> {
        length.as_ref().map(|length| self.ns(length, false)).transpose()
    }

    fn ns(&self, length: &Spanned<Length>, is_needed: bool) -> Result<u64, Mistake> {
        let us = match length.get_ref() {
            Length::Us(us) => *us,
            Length::Cost(name) => *self.costs.get(name).ok_or_else(|| {
                let what = format!("there is no cost '{name}': give it a value under [costs], or write microseconds");
                self.mistake(length.span(), what)
            })?,
        };
        self.us(us, length.span(), is_needed)
    }

    /// Converts to nanoseconds and checks the range.
    fn us(&self, us: f64, at: Range<usize>, is_needed: bool) -> Result<u64, Mistake> {
        let ns = (us * 1e3).round();
        if !(0.0..=MAX_LENGTH_US * 1e3).contains(&ns) {
            return Err(self.mistake(at, format!("{us} us is not a duration between 0 and an hour")));
        }
        if is_needed && ns < 1.0 {
            return Err(self.mistake(at, "this duration must not be 0: give a value above 0"));
        }
        Ok(ns as u64)
    }
}
