// SPDX-License-Identifier: MIT
//! `xqos explain`: shows which rules apply to a client, and why.

use crate::commands::rules::told::Told;
use crate::selector::Selector;
use anyhow::Result;
use clap::Args;
use serde_json::json;
use std::fmt::Write;
use xqos_agent::rules::loader;
use xqos_agent::session::Session;
use xqos_cli::output::{self, note, print};

/// Explains for a client why each rule matches, or which key did not match
///
/// Before the rules it shows what is known about the client, and the settings that the rules ask for next to the
/// current ones. If the two differ, a setting was made manually, or `xqos rules run` is not running.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    selector: Selector,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  xqos explain --pick             click on a window
  xqos explain --pid 4711
  xqos explain --window 0x1c00007 --json | jq '.clients[].settings'";

impl Arguments {
    pub fn perform(&self, display: Option<&str>) -> Result<()> {
        let session = Session::open(display)?;
        let entries = self.selector.resolve(&session)?;
        let loaded = loader().load();
        loaded.mistakes.iter().for_each(|mistake| note(&mistake.to_string()));
        let told = Told::of(&session, &entries, &loaded.rules)?;
        if self.json {
            return output::json(&json!({ "version": 1, "clients": told }));
        }
        print(&told.iter().map(explained).collect::<Vec<_>>().join("\n"))
    }
}

fn explained(told: &Told) -> String {
    let mut text = format!("{}\n\nKnown facts:\n", told.described);
    for (key, known) in &told.known {
        let _ = writeln!(text, "  {:<8} {known}", key.name());
    }
    let now: Vec<_> = told.now.iter().map(|(setting, value)| format!("{setting} {value}")).collect();
    let _ = writeln!(text, "\nCurrent settings: {}\n\nSettings from rules:", now.join(", "));
    for made in &told.settings {
        let now = made.now.as_ref().map(|now| format!("; now {now}")).unwrap_or_default();
        let _ = writeln!(text, "  {}, from {} ({}){now}", made.written, made.rule, made.place);
    }
    match (told.settings.is_empty(), told.ignored) {
        (true, _) => text.push_str("  no rule sets anything\n"),
        (false, true) => text.push_str("  none of them is applied: a rule tells xqos to ignore this client\n"),
        _ => {}
    }
    text.push_str("\nRules:\n");
    for judged in &told.rules {
        let mark = if judged.matched { '*' } else { ' ' };
        let _ = writeln!(text, "{mark} {} ({}): {}", judged.rule, judged.place, judged.why);
    }
    if told.rules.is_empty() {
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
        let told = Told::new(&entry, &facts, &rules);
        let text = explained(&told);
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
        let json = json!(told);
        assert_eq!((&json["facts"]["exe"], &json["facts"]["local"]), (&"/usr/bin/mpv".into(), &true.into()));
        assert!(json["facts"]["class"].is_null() && json["facts"]["state"]["active"].is_null(), "{json:#}");
        assert_eq!((&json["settings"][0]["setting"], &json["settings"][0]["value"]), (&"weight".into(), &"2".into()));
        assert_eq!((&json["now"]["weight"], &json["now"]["reserve"]), (&"1".into(), &"none".into()));
        assert_eq!((&json["rules"][1]["matched"], &json["pid"]), (&false.into(), &serde_json::Value::Null));
    }
}
