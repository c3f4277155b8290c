// SPDX-License-Identifier: MIT
//! Generates the man pages from the definition of the command line: one for xqos and one for each command.
//!
//! clap_mangen writes all sections except the last, because it would join the lines of examples and tables.

use crate::{output, sibling};
use anyhow::{Context, Result};
use clap::Command;
use clap_mangen::Man;
use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;
use xqos_text::time;

/// Writes xqos.1, xqos-run.1 and so on into `folder`, which is created if necessary. Commands of other programs are
/// left out; those programs write their own pages. `family` is the prefix of each command's page.
pub fn write(command: Command, family: &str, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create the folder {}", folder.display()))?;
    let (name, mut command) = (command.get_name().to_owned(), command.display_name(family.to_owned()));
    command.build();
    pages(&command.display_name(name), folder, &today())
}

fn pages(command: &Command, folder: &Path, date: &str) -> Result<()> {
    let subcommands = command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set());
    for subcommand in subcommands.filter(|subcommand| !is_elsewhere(subcommand)) {
        pages(subcommand, folder, date)?;
    }
    let man = Man::new(command.clone());
    let path = folder.join(man.get_filename());
    let text = page(&man, command, date).context("cannot generate a man page")?;
    output::write(&path, 0o666, text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
    output::line(&path.display().to_string())
}

fn is_elsewhere(subcommand: &Command) -> bool {
    subcommand.get_name() == "help" || sibling::is_listed(subcommand)
}

fn page(man: &Man, command: &Command, date: &str) -> Result<String> {
    let mut rendered = Vec::new();
    man.render_description_section(&mut rendered)?;
    man.render_options_section(&mut rendered)?;
    if command.get_subcommands().any(|subcommand| !subcommand.is_hide_set()) {
        man.render_subcommands_section(&mut rendered)?;
    }
    // mandoc warns about two line breaks in a row.
    let rendered = String::from_utf8(rendered)?.replace("\n.br\n\n.br\n", "\n.sp\n");
    let name = command.get_display_name().unwrap_or(command.get_name());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let version = env!("CARGO_PKG_VERSION");
    let mut page = format!(
        ".TH {} 1 {date} \"xqos {version}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n{}\n{rendered}",
        name.to_uppercase(),
        escaped(name),
        escaped(&about),
        escaped(&usage.trim_start_matches("Usage:").trim().replace('|', " | ")),
    );
    if let Some(after) = command.get_after_long_help().or(command.get_after_help()) {
        page.push_str(&after_help(&after.to_string()));
    }
    Ok(bold_commands(&page))
}

/// The date of SOURCE_DATE_EPOCH (for reproducible packages), or else the current date.
fn today() -> String {
    let given = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|seconds| seconds.parse().ok());
    let seconds: i64 = given.unwrap_or_else(|| UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs() as i64));
    time::utc(seconds.saturating_mul(1_000_000_000), "%F")
}

/// Makes text between backquotes bold, such as `xqos list`.
fn bold_commands(page: &str) -> String {
    let parts = page.split('`').enumerate();
    let bold = |(at, part): (usize, &str)| if at % 2 == 1 { format!("\\fB{part}\\fR") } else { part.to_owned() };
    parts.map(bold).collect()
}

/// Formats the text after the options. A line that ends in a colon starts a section. Indented lines keep their line
/// breaks; all other text is filled.
fn after_help(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let is_indented = |line: &str| line.starts_with("  ");
    let (mut page, mut starts_paragraph) = (String::new(), false);
    for block in lines.chunk_by(|line, next| is_indented(line) == is_indented(next)) {
        if is_indented(block[0]) {
            let lines: String = block.iter().map(|line| escaped(&line[2..]) + "\n").collect();
            page += &format!(".RS 4\n.nf\n{lines}.fi\n.RE\n");
            continue;
        }
        for line in block {
            let is_first = std::mem::replace(&mut starts_paragraph, line.is_empty());
            page += &match (line.strip_suffix(':'), line.split_once(": ")) {
                _ if line.is_empty() => String::new(),
                (Some(title), _) => format!(".SH {}\n", title.to_uppercase()),
                (None, Some((title, rest))) if is_first && is_title(title) => {
                    format!(".SH {}\n{}\n", title.to_uppercase(), escaped(rest))
                }
                _ if is_first => format!(".PP\n{}\n", escaped(line)),
                _ => format!("{}\n", escaped(line)),
            };
        }
    }
    page
}

/// "Exit status: 0, ..." starts a section; "Times are written with a unit: us" does not.
fn is_title(text: &str) -> bool {
    text.split(' ').count() <= 2 && text.starts_with(|letter: char| letter.is_ascii_uppercase())
}

fn escaped(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-");
    // troff would read a dot or a quote at the start of a line as a request.
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_keep_their_lines_and_notes_become_sections() {
        let text = "Examples:\n  xqos list\n  'x' -y\n\nTimes have a unit: us.\nMore.\n\nExit status: 0 or 1\nelse 2.";
        let expected = ".SH EXAMPLES\n.RS 4\n.nf\nxqos list\n\\&'x' \\-y\n.fi\n.RE\n.PP\nTimes have a unit: us.\nMore.\n\
                        .SH EXIT STATUS\n0 or 1\nelse 2.\n";
        assert_eq!(after_help(text), expected);
    }
}
