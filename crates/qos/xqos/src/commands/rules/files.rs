// SPDX-License-Identifier: MIT
//! `xqos rules check`, `list` and `test`: work on rule files and need no X server.

use anyhow::{Result, bail};
use clap::Args;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use xqos_agent::rules::loader;
use xqos_agent::rules::warnings::{Rights, warnings};
use xqos_cli::output::{self, line, note, print};
use xqos_rules::Mistake;
use xqos_rules::decide::RuleSet;
use xqos_rules::expect;
use xqos_rules::files::{self, FileStatus, Loaded};
use xqos_rules::read::Scope;
use xqos_rules::rule::{Limits, Rule};
use xqos_text::table::{Column, TextTable};

/// Checks rule files and prints each mistake with its line and what to write instead
///
/// Without FILE it checks all folders that `xqos rules run` reads. It also lists valid settings that will have no
/// effect for this user or on this server.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  xqos rules check
  xqos rules check new-rules.toml

Exit status: 1 if there is a mistake.")]
pub struct Check {
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

impl Check {
    pub fn perform(&self, display: Option<&str>) -> Result<()> {
        let (rules, limits, mistakes) = if self.files.is_empty() {
            let Loaded { rules, limits, mistakes, .. } = loader().load();
            (rules.rules().to_vec(), limits, mistakes)
        } else {
            self.named()
        };
        for mistake in &mistakes {
            line(&mistake.to_string())?;
        }
        for warning in warnings(&rules, limits, Rights::of_process(display)) {
            line(&warning)?;
        }
        match mistakes.len() {
            0 => line(&format!("{} valid", counted(rules.len(), "rule is", "rules are"))),
            some => bail!("{} in rule files: see the lines above", counted(some, "mistake", "mistakes")),
        }
    }

    fn named(&self) -> (Vec<Rule>, Limits, Vec<Mistake>) {
        let (mut rules, mut limits, mut mistakes) = (Vec::new(), Limits::default(), Vec::new());
        for path in &self.files {
            match files::read_named(path, scope_of(path)) {
                Ok(file) => {
                    rules.extend(file.rules);
                    limits = limits.overridden_by(file.limits);
                }
                Err(list) => mistakes.extend(list),
            }
        }
        (rules, limits, mistakes)
    }
}

/// The scope of a file. Files in the user's own folder may not have limits; all other files may.
fn scope_of(path: &Path) -> Scope {
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let loader = loader();
    let is_in = |folder: &&files::Folder| folder.path.canonicalize().is_ok_and(|folder| whole.starts_with(folder));
    loader.folders().iter().find(is_in).map_or(Scope::System, |folder| folder.scope)
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Lists the rule files, whether each is used, and each rule with its file and line
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  xqos rules list
  xqos rules list --json | jq '.rules[].id'

A masked file is replaced by a file of the same name in a later folder. A
refused file has a mistake, which is printed too.")]
pub struct List {
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
}

impl List {
    pub fn perform(&self) -> Result<()> {
        let loaded = loader().load();
        if self.json {
            return output::json(&listed(&loaded));
        }
        let Loaded { rules, limits, files, mistakes } = loaded;
        if files.is_empty() {
            return line("no rule files are installed: `xqos rules --help` shows an example");
        }
        let mut table = TextTable::new(["FILE", "STANDING"].map(words).into());
        for file in &files {
            table.row(vec![file.path.display().to_string(), standing(&file.status)]);
        }
        print(&table.render(None))?;
        let mut table = TextTable::new(["RULE", "PLACE", "SETS"].map(words).into());
        for rule in rules.rules() {
            table.row(vec![rule.id.clone(), rule.place.to_string(), settings(rule).join(", ")]);
        }
        print(&format!("\n{}", table.render(None)))?;
        for (name, limit) in [("auto", limits.auto), ("per_user", limits.per_user)] {
            if let Some(part) = limit.map(part) {
                line(&format!("limit {name}: {part}"))?;
            }
        }
        mistakes.iter().for_each(|mistake| note(&mistake.to_string()));
        Ok(())
    }
}

fn listed(loaded: &Loaded) -> Value {
    let Loaded { rules, limits, files, mistakes } = loaded;
    let file = |file: &files::RuleFile| json!({ "path": file.path, "standing": standing(&file.status) });
    let rule = |rule: &Rule| json!({ "id": rule.id, "place": rule.place.to_string(), "sets": settings(rule) });
    json!({
        "version": 1,
        "files": files.iter().map(file).collect::<Vec<_>>(),
        "rules": rules.rules().iter().map(rule).collect::<Vec<_>>(),
        "limits": { "auto": limits.auto.map(part), "per_user": limits.per_user.map(part) },
        "mistakes": mistakes.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

fn words(title: &'static str) -> Column {
    Column::words(title, 0)
}

fn part(ppm: u32) -> f64 {
    f64::from(ppm) / 1e6
}

fn standing(standing: &FileStatus) -> String {
    match standing {
        FileStatus::Active => "counts".to_owned(),
        FileStatus::Empty => "empty: masks files of this name in earlier folders".to_owned(),
        FileStatus::MaskedBy(path) => format!("masked by {}", path.display()),
        FileStatus::Refused { .. } => "refused".to_owned(),
    }
}

fn settings(rule: &Rule) -> Vec<String> {
    rule.settings.iter().map(ToString::to_string).collect()
}

/// Tests rules against expectations
///
/// A test file names rule files, or contains rules itself. For the facts of some clients it states which settings the
/// rules must make.
#[derive(Args, Debug)]
#[command(after_help = TEST_EXAMPLES)]
pub struct Test {
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

const TEST_EXAMPLES: &str = "\
Examples:
  xqos rules test players-test.toml

A test file:
  version = 1
  rules = [\"50-players.toml\"]        # from this file's folder
  [[case]]
  what = \"mpv, as Debian has it\"
  facts = { exe = \"/usr/bin/mpv\", local = true, state = [\"active\"] }
  set = { reserve = \"auto\" }         # exactly these settings

Exit status: 1 if a case differs.";

impl Test {
    pub fn perform(&self) -> Result<()> {
        let (mut cases, mut differing) = (0, 0);
        for path in &self.files {
            let text = files::read_named_text(path).map_err(first_mistake)?;
            let mut expectations = expect::file(&path.to_string_lossy(), &text).map_err(first_mistake)?;
            let rules = RuleSet::new(rules_of(path, &mut expectations)?);
            cases += expectations.cases.len();
            for case in &expectations.cases {
                let differences = case.differences(&rules);
                differing += usize::from(!differences.is_empty());
                for difference in differences {
                    line(&format!("{}: {}: {difference}", case.place, case.what))?;
                }
            }
        }
        match differing {
            0 => line(&format!("{} as expected", counted(cases, "case is", "cases are"))),
            some => bail!("{some} of {} as expected", counted(cases, "case is not", "cases are not")),
        }
    }
}

fn rules_of(path: &Path, expectations: &mut expect::Expectations) -> Result<Vec<Rule>> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut rules = Vec::new();
    for (name, _) in &expectations.files {
        rules.extend(files::read_named(&folder.join(name), Scope::System).map_err(first_mistake)?.rules);
    }
    rules.append(&mut expectations.rules);
    Ok(rules)
}

/// The first mistake as an error; the others are printed as notes.
fn first_mistake(mistakes: Vec<Mistake>) -> anyhow::Error {
    let mut mistakes = mistakes.into_iter();
    let first = mistakes.next();
    mistakes.for_each(|mistake| note(&mistake.to_string()));
    first.map_or_else(|| anyhow::anyhow!("the file cannot be read"), anyhow::Error::from)
}
