// SPDX-License-Identifier: MIT
//! Adds the path of our script to weston.ini, and removes it again, which restores the file byte for byte.

const SECTION: &str = "[xwayland]";
const BEGIN: &str = "# xqos begin";
const END: &str = "# xqos end";
/// Suffixes of our block's first line, which record what else was added or created.
const NO_NEWLINE: &str = ", after a line without an end";
const NEW_FILE: &str = ", in a new file";
const WAS: &str = "# was: ";

/// The file with this path; `None` if the file already has our block.
pub fn with_path(text: Option<&str>, path: &str) -> Option<String> {
    let Some(text) = text else {
        return Some(format!("{BEGIN}{NEW_FILE}\n{SECTION}\npath={path}\n{END}\n"));
    };
    if text.lines().any(|line| line.starts_with(BEGIN)) {
        return None;
    }
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    let Some(section) = lines.iter().position(|line| line.trim() == SECTION) else {
        let (before, why) = if text.is_empty() || text.ends_with('\n') { ("", "") } else { ("\n", NO_NEWLINE) };
        return Some(format!("{text}{before}{BEGIN}{why}\n{SECTION}\npath={path}\n{END}\n"));
    };
    let is_path = |line: &String| line.split_once('=').is_some_and(|(key, _)| key.trim() == "path");
    let own = lines[section + 1..].iter().take_while(|line| !line.trim_start().starts_with('['));
    match own.enumerate().find(|(_, line)| is_path(line)).map(|(index, _)| section + 1 + index) {
        Some(index) => {
            let ended = lines[index].ends_with('\n');
            let why = if ended { "" } else { NO_NEWLINE };
            let was = lines[index].trim_end_matches('\n').to_owned();
            lines[index] = format!("{BEGIN}{why}\n{WAS}{was}\npath={path}\n{END}\n");
        }
        None => {
            let why = if lines[section].ends_with('\n') { "" } else { NO_NEWLINE };
            let before = if why.is_empty() { "" } else { "\n" };
            lines[section] += &format!("{before}{BEGIN}{why}\npath={path}\n{END}\n");
        }
    }
    Some(lines.concat())
}

/// The file without our block.
#[derive(Debug, PartialEq, Eq)]
pub enum Removal {
    /// The file does not contain our block.
    NoBlock,
    /// We created the file, and nothing else is in it.
    WholeFile,
    Text(String),
}

/// The file as it was before [`with_path`]; later changes outside our block are kept.
pub fn without_path(text: &str) -> Removal {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let begin = lines.iter().position(|line| line.starts_with(BEGIN));
    let end = lines.iter().position(|line| line.trim_end() == END);
    let (Some(begin), Some(end)) = (begin, end.filter(|&end| begin.is_some_and(|begin| begin < end))) else {
        return Removal::NoBlock;
    };
    let (mut before, after) = (lines[..begin].concat(), lines[end + 1..].concat());
    let was = lines[begin..end].iter().find_map(|line| line.strip_prefix(WAS));
    let had_no_newline = lines[begin].contains(NO_NEWLINE) && after.is_empty();
    match was {
        Some(was) if had_no_newline => before += was.trim_end_matches('\n'),
        Some(was) => before += was,
        None if had_no_newline => _ = before.pop(),
        None => {}
    }
    let left = before + &after;
    if left.is_empty() && lines[begin].contains(NEW_FILE) { Removal::WholeFile } else { Removal::Text(left) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: [&str; 9] = [
        "",
        "[core]\nxwayland=true\n",
        "[core]\nxwayland=true",
        "[xwayland]\n",
        "[xwayland]",
        "[core]\n[xwayland]\n# mine\npath=/opt/Xwayland\n[shell]\npath=other\n",
        "[xwayland]\npath=/opt/Xwayland",
        "[core]\r\nxwayland=true\r\n[xwayland]\r\npath = /opt/Xwayland\r\n[shell]\r\n",
        "[xwayland]\n[shell]\npath=not this\n",
    ];

    #[test]
    fn a_file_is_restored_exactly() {
        for file in FILES {
            let with = with_path(Some(file), "/ours").expect("it was not there");
            assert!(with.contains("\npath=/ours\n"), "{with}");
            assert_eq!(with_path(Some(&with), "/ours"), None, "twice is once");
            assert_eq!(without_path(&with), Removal::Text(file.to_owned()), "{with}");
            assert_eq!(without_path(file), Removal::NoBlock);
        }
        let new = with_path(None, "/ours").unwrap();
        assert_eq!((new.matches(SECTION).count(), without_path(&new)), (1, Removal::WholeFile));
    }

    /// weston uses the last path of the section, so only one may be outside comments.
    #[test]
    fn the_section_has_one_path_and_other_sections_keep_theirs() {
        for file in FILES {
            let with = with_path(Some(file), "/ours").unwrap();
            let of_section: Vec<&str> = with
                .lines()
                .skip_while(|line| *line != SECTION)
                .skip(1)
                .take_while(|line| !line.starts_with('['))
                .filter(|line| line.starts_with("path"))
                .collect();
            assert_eq!(of_section, ["path=/ours"], "{with}");
        }
    }

    #[test]
    fn later_additions_are_kept() {
        let with = with_path(Some("[core]"), "/ours").unwrap() + "[shell]\nx=1\n";
        assert_eq!(without_path(&with), Removal::Text("[core]\n[shell]\nx=1\n".to_owned()));
        let own = format!("[a]\n{}", with_path(None, "/ours").unwrap());
        assert_eq!(without_path(&own), Removal::Text("[a]\n".to_owned()));
    }

    #[test]
    fn an_incomplete_block_is_left_alone() {
        for text in ["# xqos begin\npath=/ours\n", "# xqos end\n# xqos begin\n", "# xqos end\n"] {
            assert_eq!(without_path(text), Removal::NoBlock);
        }
    }
}
