// SPDX-License-Identifier: MIT
//! The pages of the experiments, docs/experiments/NAME.md: the question, the measurement, and how to read the result;
//! and the items of the papers, docs/papers.md.
//!
//! A report includes the prose of the page, so the prose is written only once. Tables come from the report itself.
//! Links are reduced to their text, since a report is self-contained.

use crate::experiments;
use crate::results::{Finding, with_figures};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd, html};

/// The items of the papers.
static PAPERS: &str = include_str!("../../../docs/papers.md");

/// The prose of an experiment's page, as HTML; `None` if there is no page.
pub(crate) fn html(name: &str) -> Option<String> {
    experiments::page(name).map(|page| without_links(&prose(page)))
}

/// The items of the papers with the figures of these results, as HTML.
pub(crate) fn papers(found: &[Finding]) -> String {
    let items = with_figures(PAPERS, found);
    let title = items.lines().next().unwrap_or_default();
    // The headings of the page become lower than those of the report.
    without_links(&items.replacen(title, "", 1).replace("\n## ", "\n### "))
}

fn without_links(markdown: &str) -> String {
    let is_kept = |event: &Event| {
        !matches!(event, Event::Start(Tag::Link { .. } | Tag::Image { .. }) | Event::End(TagEnd::Link | TagEnd::Image))
            && !matches!(event, Event::Html(_) | Event::InlineHtml(_))
    };
    let mut out = String::new();
    html::push_html(&mut out, Parser::new_ext(markdown, Options::ENABLE_TABLES).filter(is_kept));
    out
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
    fn the_items_of_the_papers_have_a_dash_where_the_results_have_no_figure() {
        let html = papers(&[]);
        let items = PAPERS.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| # ")).count();
        assert_eq!(html.matches("<tr>").count(), items + html.matches("<table>").count());
        let echo = html.lines().find(|line| line.contains("<td>A23</td>")).expect("an item");
        assert!(
            echo.contains("170 ms") && echo.contains("<code>smart</code> - (-) ms") && !html.contains("<a "),
            "{echo}"
        );
    }
}
