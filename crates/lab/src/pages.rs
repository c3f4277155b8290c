// SPDX-License-Identifier: MIT
//! The pages of the experiments, docs/experiments/NAME.md: the question, the measurement, and how to read the result.
//!
//! A report includes the prose of the page, so the prose is written only once. Tables come from the report itself.
//! Links are reduced to their text, since a report is self-contained.

use pulldown_cmark::{Event, Parser, Tag, TagEnd, html};

macro_rules! pages {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../../../docs/experiments/", $name, ".md")))),*]
    };
}

static PAGES: [(&str, &str); 42] = pages!(
    "animation" "auto" "below" "below_cost" "below_shares" "blocking" "bursts" "crowds" "cut" "demo" "desktop" "drag_priorities" "endtoend" "everyday" "expose"
    "fairness" "families" "grid" "groups" "hard" "idle" "interactive" "intervals" "intervals_ends" "intervals_latency" "memory" "near" "ocbench" "player" "policies" "priorities" "queue"
    "response" "rules" "scale" "simulation" "soft" "sync" "system_calls" "throughput" "tracing" "xmark"
);

/// The prose of an experiment's page, as HTML; `None` if there is no page.
pub(crate) fn html(name: &str) -> Option<String> {
    let (_, page) = PAGES.iter().find(|(of, _)| *of == name)?;
    let is_kept = |event: &Event| {
        !matches!(event, Event::Start(Tag::Link { .. } | Tag::Image { .. }) | Event::End(TagEnd::Link | TagEnd::Image))
            && !matches!(event, Event::Html(_) | Event::InlineHtml(_))
    };
    let mut out = String::new();
    html::push_html(&mut out, Parser::new(&prose(page)).filter(is_kept));
    Some(out)
}

/// The page without its title, its command and its section of figures.
fn prose(page: &str) -> String {
    let command = |line: &&str| !line.starts_with("    xqos bench run ");
    let body: Vec<&str> = page.lines().skip(1).filter(command).collect();
    let body = body.join("\n");
    let sections = body.split("\n## ").filter(|section| !section.starts_with("Figures"));
    // Make the headings of the page lower than those of the report.
    sections.collect::<Vec<_>>().join("\n#### ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_the_prose_without_title_figures_and_links() {
        let page = "# blocking: x\n\n    xqos bench run blocking\n\nSee [the report](../report).\n\n## Figures\n\n<!-- a -->\n| 1 |\n\n## Reading results\n\nText.\n";
        assert_eq!(prose(page).trim(), "See [the report](../report).\n\n#### Reading results\n\nText.");
        let html = html("blocking").unwrap();
        assert!(html.contains("<h4>Method</h4>") && !html.contains("<a ") && !html.contains("<table"), "{html}");
        assert_eq!(super::html("nothing"), None);
    }

    #[test]
    fn each_experiment_has_a_page() {
        for experiment in crate::experiments::all() {
            assert!(super::html(&experiment.name).is_some(), "docs/experiments/{}.md is not there", experiment.name);
        }
    }
}
