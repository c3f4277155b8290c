// SPDX-License-Identifier: MIT
//! Style and scripts that all pages share, and JSON for a page's script.

/// The shared style, which precedes a page's own style.
pub const STYLE: &str = concat!(include_str!("colours.css"), include_str!("viewer.css"));
/// The shared scripts, which precede a page's own script.
pub const SCRIPT: &str = concat!(
    "\"use strict\";\n",
    include_str!("format.js"),
    include_str!("dom.js"),
    include_str!("search.js"),
    include_str!("timeline.js"),
    include_str!("viewer.js"),
);

/// Encodes a value as JSON for a page. Escapes "<", because "</script>" in a text would end the script.
pub fn json(value: &impl serde::Serialize) -> serde_json::Result<String> {
    Ok(serde_json::to_string(value)?.replace('<', "\\u003c"))
}
