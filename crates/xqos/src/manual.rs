//! Man pages, made from the definition of the command line: one for xqos and one for each command.
//!
//! clap_mangen writes all but the last section: examples and tables have lines of their own, which it would run
//! together.

use crate::output;
use anyhow::{Context, Result};
use clap::Command;
use clap_mangen::Man;
use std::fs;
use std::io::Write;
use std::path::Path;

/// Writes xqos.1, xqos-run.1, ... into `folder`, which is made where it is not there.
pub fn write(mut command: Command, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    command.build();
    pages(&command, folder)
}

fn pages(command: &Command, folder: &Path) -> Result<()> {
    let subcommands = command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set());
    for subcommand in subcommands.filter(|subcommand| subcommand.get_name() != "help") {
        pages(subcommand, folder)?;
    }
    let man = Man::new(command.clone()).manual("User Commands");
    let path = folder.join(man.get_filename());
    let text = page(&man, command).context("cannot make a man page")?;
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    output::line(&path.display().to_string())
}

fn page(man: &Man, command: &Command) -> std::io::Result<Vec<u8>> {
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.get_subcommands().any(|subcommand| !subcommand.is_hide_set()) {
        man.render_subcommands_section(&mut page)?;
    }
    if let Some(after) = command.get_after_long_help().or(command.get_after_help()) {
        page.write_all(after_help(&after.to_string()).as_bytes())?;
    }
    Ok(page)
}

/// A title ending in a colon is a section; indented lines stand as they are; the rest is running text.
fn after_help(text: &str) -> String {
    let mut page = String::new();
    let mut as_is = false;
    let mut paragraph = false;
    for line in text.lines() {
        let indented = line.starts_with("  ");
        if as_is && !indented {
            page.push_str(".fi\n.RE\n");
            as_is = false;
        }
        match line.strip_suffix(':') {
            _ if line.is_empty() => paragraph = true,
            Some(title) if !indented => {
                page.push_str(&format!(".SH {}\n", title.to_uppercase()));
                paragraph = false;
            }
            _ if indented => {
                if !as_is {
                    page.push_str(".RS 4\n.nf\n");
                    as_is = true;
                }
                page.push_str(&format!("{}\n", escaped(&line[2..])));
            }
            _ => {
                match line.split_once(": ").filter(|(title, _)| paragraph && is_title(title)) {
                    Some((title, rest)) => {
                        page.push_str(&format!(".SH {}\n{}\n", title.to_uppercase(), escaped(rest)));
                    }
                    None if paragraph => page.push_str(&format!(".PP\n{}\n", escaped(line))),
                    None => page.push_str(&format!("{}\n", escaped(line))),
                }
                paragraph = false;
            }
        }
    }
    if as_is {
        page.push_str(".fi\n.RE\n");
    }
    page
}

/// "Exit status: 0, ..." starts a section; "Times are written with a unit: us" does not.
fn is_title(text: &str) -> bool {
    text.split(' ').count() <= 2 && text.starts_with(|letter: char| letter.is_ascii_uppercase())
}

fn escaped(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-");
    // A dot or a quote at the start of a line would be a request.
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
