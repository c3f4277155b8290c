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

/// Shows for a client each rule: that it matched, or the key that failed and what it met
///
/// Above the rules it shows what is known of the client, and what the rules come to beside what the server has now. Where
/// the two differ, somebody has set it by hand, or no `xqos rules run` is there.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    selector: Selector,
    /// Write JSON instead of text
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
    let mut text = format!("{}\n\nKnown of it:\n", told.described);
    for (key, known) in &told.known {
        let _ = writeln!(text, "  {:<8} {known}", key.name());
    }
    let now: Vec<_> = told.now.iter().map(|(setting, value)| format!("{setting} {value}")).collect();
    let _ = writeln!(text, "\nServed with: {}\n\nSettings of rules:", now.join(", "));
    for made in &told.settings {
        let now = made.now.as_ref().map(|now| format!("; now {now}")).unwrap_or_default();
        let _ = writeln!(text, "  {}, by {} ({}){now}", made.written, made.rule, made.place);
    }
    match (told.settings.is_empty(), told.ignored) {
        (true, _) => text.push_str("  no rule sets anything\n"),
        (false, true) => text.push_str("  none of them is made: the client is to be ignored\n"),
        _ => {}
    }
    text.push_str("\nRules:\n");
    for judged in &told.rules {
        let mark = if judged.matched { '*' } else { ' ' };
        let _ = writeln!(text, "{mark} {} ({}): {}", judged.rule, judged.place, judged.why);
    }
    if told.rules.is_empty() {
        text.push_str("  there are none: `xqos rules --help` shows one\n");
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
            "  class    not known",
            "Served with: hard false, priority 0, reserve none, slice none, weight 1",
            "  weight = 2, by players (r.toml:2); now 1",
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
