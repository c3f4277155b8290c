// SPDX-License-Identifier: MIT
//! Tests the report's page as text; [`browser`] tests it in Chromium.

mod browser;

use super::*;
use crate::bench::text as text_of;
use crate::machine::Machine;
use crate::study::{Goal, Panel, Scatter, Study};

#[test]
fn measured_text_cannot_break_the_page() {
    let evil = "</script><b>{body}".to_owned();
    let panel = Panel { case: "stock".to_owned(), name: evil.clone(), points: vec![[0.0, 1.0]] };
    let scatter = Scatter { title: evil.clone(), panels: vec![panel], ..Scatter::default() };
    let study = Study {
        title: evil.clone(),
        question: evil.clone(),
        verdicts: vec![GoalCheck::of_value(evil.as_str(), 1.0, "", Goal::AtMost(2.0))],
        charts: vec![Chart::Scatter(scatter)],
        ..Study::default()
    };
    let machine = Machine { processor: evil.clone(), ..Machine::default() };
    let finding = Finding { experiment: "demo".into(), quick: false, pairs: 1, machine, disturbance: None, study };
    let page = html(&[finding]).unwrap();
    assert_eq!(page.matches("</script>").count(), 2, "the data's and the script's own ends");
    assert!(!page.contains("<b>{body}"));
}

#[test]
fn a_result_of_another_build_is_marked_in_the_contents_and_in_its_section() {
    let finding = |name: &str, module: &str, measured_at| {
        let machine = Machine { module: module.into(), measured_at, ..Machine::default() };
        let study = Study { title: format!("About {name}"), ..Study::default() };
        Finding { experiment: name.into(), quick: false, pairs: 1, machine, disturbance: None, study }
    };
    let page = html(&[finding("hard", "0.1 (a)", 1), finding("soft", "0.1 (b)", 2)]).unwrap();
    assert!(page.contains(">About hard</a>  <small>another build</small></li>"), "{page}");
    assert!(page.contains(">About soft</a> </li>"), "{page}");
    assert_eq!(page.matches("From another build: measured with 0.1 (a); the report is about 0.1 (b).").count(), 1);
}

#[test]
fn one_experiment_begins_with_its_result_and_ends_with_goals_and_noise() {
    let panel = Panel { case: "stock".to_owned(), name: "stock".to_owned(), points: vec![[0.0, 1.0]] };
    let study = Study {
        title: "The title".to_owned(),
        question: "The question".to_owned(),
        answer: "The result".to_owned(),
        verdicts: vec![GoalCheck::of_value("The goal", 3.0, "", Goal::AtMost(2.0))],
        tables: vec![Table::new("The table", &["case"])],
        charts: vec![Chart::Scatter(Scatter {
            title: "The picture".to_owned(),
            panels: vec![panel],
            ..Scatter::default()
        })],
    };
    let disturbance = Some(Disturbance { others: 0.5, ..Disturbance::default() });
    let machine = Machine::default();
    let one = Finding { experiment: "demo".into(), quick: false, pairs: 1, machine, disturbance, study };
    let order = ["The result", "The question", "The picture", "The table", "The goal", "Noisy"];
    let is_in_order = |text: &str, parts: &[&str]| {
        let at: Vec<Option<usize>> = parts.iter().map(|part| text.find(part)).collect();
        assert!(at.iter().all(Option::is_some) && at.is_sorted(), "{parts:?} are at {at:?} in {text}");
    };
    let page = html(std::slice::from_ref(&one)).unwrap();
    let page = &page[page.find("<main>").unwrap()..page.find("</main>").unwrap()];
    is_in_order(page, &order);
    is_in_order(page, &["The picture", "0 of 1 goals are met"]);
    let text = text_of(&[one]);
    is_in_order(&text, &["The result", "The question", "The table", "The goal", "Noisy"]);
    is_in_order(&text, &["The goal", "0 of 1 goals are met"]);
}

#[test]
fn the_page_is_self_contained() {
    for part in [FRAME, STYLE, SCRIPT] {
        assert!(!part.contains("http://www.w3.org/1999") || part == SCRIPT);
        assert!(!part.contains("https:") && !part.contains("src=") && !part.contains("@import"));
    }
}

#[test]
fn a_report_has_the_prose_without_title_figures_and_links() {
    let page = "# blocking: x\n\n    xqos bench run blocking\n\nSee [the report](../report).\n\n## Figures\n\n<!-- a -->\n| 1 |\n\n## Reading results\n\nText.\n";
    assert_eq!(prose(page).trim(), "See [the report](../report).\n\n#### Reading results\n\nText.");
    let html = page_of("blocking").unwrap();
    assert!(html.contains("<h4>Method</h4>") && !html.contains("<a ") && !html.contains("<table"), "{html}");
    assert_eq!(page_of("nothing"), None);
}

#[test]
fn the_items_of_the_papers_have_a_dash_where_the_results_have_no_figure() {
    let html = papers(&[]);
    let items = ITEMS.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| # ")).count();
    assert_eq!(html.matches("<tr>").count(), items + html.matches("<table>").count());
    let echo = html.lines().find(|line| line.contains("<td>A23</td>")).expect("an item");
    assert!(echo.contains("170 ms") && echo.contains("<code>smart</code> - (-) ms") && !html.contains("<a "), "{echo}");
}
