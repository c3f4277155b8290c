// SPDX-License-Identifier: MIT
//! Adds the path of our script to weston.ini, and removes it again, which restores the file.
//!
//! weston reads only the first section of a name, so our section comes first and the file's own section stays as it is.

const BEGIN: &str = "# xqos begin\n";
const END: &str = "# xqos end\n";

/// The file with our section; `None` if the file already has it.
pub fn with_path(text: &str, path: &str) -> Option<String> {
    (!text.contains(BEGIN)).then(|| format!("{BEGIN}[xwayland]\npath={path}\n{END}{text}"))
}

/// The file without our section; `None` if the file does not have it.
pub fn without_path(text: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_restored_exactly() {
        for file in ["", "[core]\nxwayland=true", "[core]\r\n[xwayland]\r\npath = /opt/Xwayland\r\n[shell]\r\n"] {
            let with = with_path(file, "/ours").expect("it was not there");
            assert!(with.starts_with("# xqos begin\n[xwayland]\npath=/ours\n"), "{with}");
            assert_eq!(with_path(&with, "/ours"), None, "twice is once");
            assert_eq!(without_path(&with).as_deref(), Some(file));
            assert_eq!(without_path(file), None);
        }
    }

    #[test]
    fn later_additions_are_kept() {
        let with = with_path("[core]\n", "/ours").unwrap();
        let added = format!("[a]\n{with}[shell]\nx=1\n");
        assert_eq!(without_path(&added).as_deref(), Some("[a]\n[core]\n[shell]\nx=1\n"));
    }

    #[test]
    fn an_incomplete_block_is_left_alone() {
        for text in ["# xqos begin\npath=/ours\n", "# xqos end\n# xqos begin\n", "# xqos end\n"] {
            assert_eq!(without_path(text), None);
        }
    }
}
