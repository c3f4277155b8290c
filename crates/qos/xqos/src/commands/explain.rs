// SPDX-License-Identifier: MIT
//! `xqos explain`: shows which rules apply to a client, and why.

use crate::selector::Selector;
use anyhow::Result;
use clap::Args;
use serde_json::json;
use std::fmt::Write;
use xqos_agent::rules::effect::Effect;
use xqos_agent::rules::loader;
use xqos_agent::session::Session;
use xqos_cli::output::{self, note, print};

/// Explains for a client why each rule matches or does not match
///
/// The command first shows what is known about the client, and the settings that the rules ask for next to the current
/// settings. If the two differ, a setting was made manually, or `xqos rules run` is not running.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  xqos explain --pick             click on a window
  xqos explain --pid 4711
  xqos explain --window 0x1c00007 --json | jq '.clients[].settings'")]
pub struct Arguments {
    #[command(flatten)]
    selector: Selector,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

impl Arguments {
    pub fn perform(&self, display: Option<&str>) -> Result<()> {
        let session = Session::open(display)?;
        let entries = self.selector.resolve(&session)?;
        let loaded = loader().load();
        loaded.mistakes.iter().for_each(|mistake| note(&mistake.to_string()));
        let effects = Effect::evaluate(&session, &entries, &loaded.rules)?;
        if self.json {
            return output::json(&json!({ "version": 1, "clients": effects }));
        }
        print(&effects.iter().map(explained).collect::<Vec<_>>().join("\n"))
    }
}

fn explained(effect: &Effect) -> String {
    let mut text = format!("{}\n\nKnown facts:\n", effect.described);
    for (key, known) in &effect.known {
        let _ = writeln!(text, "  {:<8} {known}", key.name());
    }
    let now: Vec<_> = effect.now.iter().map(|(setting, value)| format!("{setting} {value}")).collect();
    let _ = writeln!(text, "\nCurrent settings: {}\n\nSettings from rules:", now.join(", "));
    for setting in &effect.settings {
        let now = setting.now.as_ref().map(|now| format!("; now {now}")).unwrap_or_default();
        let _ = writeln!(text, "  {}, from {} ({}){now}", setting.written, setting.rule, setting.place);
    }
    match (effect.settings.is_empty(), effect.ignored) {
        (true, _) => text.push_str("  no rule sets anything\n"),
        (false, true) => text.push_str("  none of them is applied: a rule tells xqos to ignore this client\n"),
        _ => {}
    }
    text.push_str("\nRules:\n");
    for verdict in &effect.rules {
        let mark = if verdict.matched { '*' } else { ' ' };
        let _ = writeln!(text, "{mark} {} ({}): {}", verdict.rule, verdict.place, verdict.why);
    }
    if effect.rules.is_empty() {
        text.push_str("  no rules are installed: `xqos rules --help` shows an example\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_abi::ClientEntry;
    use xqos_rules::decide::RuleSet;
    use xqos_rules::facts::ClientFacts;
    use xqos_rules::read::{self, Scope};

    #[test]
    fn settings_and_rules_are_explained_with_file_and_line() {
        let text = "\
version = 1
[[rule]]
id = \"players\"
match = { exe = \"*/mpv\" }
set = { weight = 2 }
[[rule]]
id = \"remote\"
match = { local = false }
set = { max = \"20%\" }
";
        let rules = RuleSet::new(read::file("r.toml", text, Scope::System).unwrap().rules);
        let facts = ClientFacts { exe: Some("/usr/bin/mpv".into()), local: Some(true), ..ClientFacts::default() };
        let entry = ClientEntry { client: 0x40_0000, weight: 100, name: "mpv".into(), ..ClientEntry::default() };
        let effect = Effect::new(&entry, &facts, &rules);
        let text = explained(&effect);
        for line in [
            "mpv (client 0x400000)",
            "  exe      /usr/bin/mpv",
            "  class    unknown",
            "Current settings: hard false, priority 0, reserve none, slice none, weight 1",
            "  weight = 2, from players (r.toml:2); now 1",
            "* players (r.toml:2): matched",
            "  remote (r.toml:6): local is true, not false",
        ] {
            assert!(text.lines().any(|found| found == line), "'{line}' is missing in\n{text}");
        }
        let json = json!(effect);
        assert_eq!((&json["facts"]["exe"], &json["facts"]["local"]), (&"/usr/bin/mpv".into(), &true.into()));
        assert!(json["facts"]["class"].is_null() && json["facts"]["state"]["active"].is_null(), "{json:#}");
        assert_eq!((&json["settings"][0]["setting"], &json["settings"][0]["value"]), (&"weight".into(), &"2".into()));
        assert_eq!((&json["now"]["weight"], &json["now"]["reserve"]), (&"1".into(), &"none".into()));
        assert_eq!((&json["rules"][1]["matched"], &json["pid"]), (&false.into(), &serde_json::Value::Null));
    }
}
