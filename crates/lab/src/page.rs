// SPDX-License-Identifier: MIT
//! Findings as one self-contained page: it loads nothing from the network, has light and dark colours, and is readable
//! without scripts.
//!
//! Text, verdicts and tables are generated here. The browser draws the charts from data in the page.

use crate::disturbance::Disturbance;
use crate::pages;
use crate::render::is_numeric;
use crate::results::{Build, Finding, conclusions};
use crate::study::{Chart, Study, Table, Verdict};
use anyhow::Result;
use std::fmt::Write;

const FRAME: &str = include_str!("page/page.html");
const STYLE: &str = concat!(include_str!("../../../web/colours.css"), include_str!("page/page.css"));
const SCRIPT: &str = concat!(
    "\"use strict\";\n",
    include_str!("../../../web/format.js"),
    include_str!("../../../web/dom.js"),
    include_str!("../../../web/timeline.js"),
    include_str!("page/drawing.js"),
    include_str!("page/axis.js"),
    include_str!("page/scatter.js"),
    include_str!("page/ranges.js"),
    include_str!("page/lines.js"),
    include_str!("page/lanes.js"),
    include_str!("page/page.js")
);

const PAPERS: &str = "The papers, item by item";

/// More verdicts than this are shown as a table.
const MOST_CARDS: usize = 4;

pub(crate) fn html(findings: &[Finding]) -> Result<String> {
    let mut body = String::new();
    let mut charts: Vec<&Chart> = Vec::new();
    let build = Build::of(findings);
    for finding in findings {
        write_study(&mut body, finding, (findings.len() == 1, build), &mut charts);
    }
    if findings.len() > 1 {
        let _ = write!(body, "<section id=\"papers\"><h2>{PAPERS}</h2>{}</section>", pages::papers(findings));
    }
    let conclusions = list(&conclusions(findings));
    // The page of one experiment starts with its result; the page of several starts with the conclusions.
    let (title, contents, conclusions_of_one) = match findings {
        [one] => (one.study.title.clone(), String::new(), conclusions),
        _ => ("xqos: what it does and what it costs".to_owned(), conclusions + &contents(findings), String::new()),
    };
    // A script element ends at the first `</`, wherever it is.
    let data = serde_json::to_string(&charts)?.replace("</", "<\\/");
    // Insert the body last, so that measured text is never searched for placeholders.
    Ok(FRAME
        .replace("{title}", &escape(&title))
        .replace("{style}", STYLE)
        .replace("{script}", SCRIPT)
        .replace("{data}", &data)
        .replace("{contents}", &contents)
        .replace("{conclusions_of_one}", &conclusions_of_one)
        .replace("{body}", &body))
}

fn list(conclusions: &[String]) -> String {
    let item = |all: String, line: &String| all + "<li>" + &escape(&typeset(line)) + "</li>";
    let items = conclusions.iter().fold(String::new(), item);
    format!("<ul class=\"conclusions\">{items}</ul>")
}

fn contents(findings: &[Finding]) -> String {
    let build = Build::of(findings);
    let links = findings.iter().map(|finding| {
        let (met, goals) = count(&finding.study);
        let state = if met == goals { "met" } else { "missed" };
        let score = if goals > 0 { format!("<span class=\"{state}\">{met}/{goals}</span>") } else { String::new() };
        let mark = build.mark(finding).map_or(String::new(), |mark| format!(" <small>{mark}</small>"));
        format!("<li><a href=\"#{}\">{}</a> {score}{mark}</li>", finding.experiment, escape(&finding.study.title))
    });
    let papers = format!("<li><a href=\"#papers\">{PAPERS}</a></li>");
    format!("<nav><ul>{}{papers}</ul></nav>", links.collect::<String>())
}

fn count(study: &Study) -> (usize, usize) {
    let goals = study.verdicts.iter().filter_map(Verdict::is_met);
    (goals.clone().filter(|&met| met).count(), goals.count())
}

fn write_study<'a>(out: &mut String, finding: &'a Finding, of: (bool, Build), charts: &mut Vec<&'a Chart>) {
    let (alone, build) = of;
    let study = &finding.study;
    let _ = write!(out, "<section id=\"{}\">", finding.experiment);
    if !alone {
        let _ = write!(out, "<h2>{}</h2>", escape(&study.title));
    }
    if !study.answer.is_empty() {
        let _ = write!(out, "<p class=\"answer\">{}</p>", escape(&study.answer.replace(" ms", "\u{a0}ms")));
    }
    let _ = write!(out, "<p class=\"question\">{}</p>", escape(&study.question));
    if finding.quick {
        out.push_str("<p class=\"quick\">Quick run (--quick): shows that it works; its figures are not reliable.</p>");
    }
    for chart in study.charts.iter().filter(|chart| matches!(chart, Chart::Scatter(_))) {
        write_chart(out, chart, charts);
    }
    for table in &study.tables {
        write_table(out, table);
    }
    for chart in study.charts.iter().filter(|chart| !matches!(chart, Chart::Scatter(_))) {
        write_chart(out, chart, charts);
    }
    let _ = write!(out, "{}", pages::html(&finding.experiment).unwrap_or_default());
    match study.verdicts.len() {
        0..=MOST_CARDS => write_cards(out, &study.verdicts),
        _ => write_verdicts(out, &study.verdicts),
    }
    for doubt in build.caution(finding).into_iter().chain(finding.noise()) {
        let _ = write!(out, "<p class=\"quick\">{}</p>", escape(&doubt));
    }
    write_machine(out, finding);
    out.push_str("</section>");
}

fn write_chart<'a>(out: &mut String, chart: &'a Chart, charts: &mut Vec<&'a Chart>) {
    let title = match chart {
        Chart::Scatter(scatter) => &scatter.title,
        Chart::Ranges(ranges) => &ranges.title,
        Chart::Lines(lines) => &lines.title,
        Chart::Lanes(lanes) => &lanes.title,
    };
    let index = charts.len();
    let _ = write!(out, "<figure data-chart=\"{index}\"><figcaption>{}</figcaption></figure>", escape(title));
    charts.push(chart);
}

fn write_cards(out: &mut String, verdicts: &[Verdict]) {
    if verdicts.is_empty() {
        return;
    }
    out.push_str("<div class=\"cards\">");
    for verdict in verdicts {
        let state = state(verdict);
        let outcome = match verdict.is_met() {
            None => verdict.text(),
            Some(_) => format!("goal {}: {}", typeset(&verdict.goal_text()), verdict.text()),
        };
        let _ = write!(
            out,
            "<div class=\"card\"><div class=\"what\">{}</div><div class=\"value\">{}</div>\
             <div class=\"{state}\">{}</div></div>",
            escape(&verdict.what),
            escape(&typeset(&verdict.value_text())),
            escape(&outcome)
        );
    }
    out.push_str("</div>");
}

fn write_verdicts(out: &mut String, verdicts: &[Verdict]) {
    out.push_str("<div class=\"table\"><table><caption>Goals</caption><thead><tr><th class=\"text\"></th>");
    for name in ["measured", "goal", "verdict", "range of the pairs"] {
        let _ = write!(out, "<th>{name}</th>");
    }
    out.push_str("</tr></thead><tbody>");
    for verdict in verdicts {
        let _ = write!(out, "<tr><th scope=\"row\">{}</th>", escape(&verdict.what));
        for cell in [verdict.value_text(), verdict.goal_text()] {
            let _ = write!(out, "<td>{}</td>", escape(&typeset(&cell)));
        }
        let _ = write!(out, "<td class=\"{}\">{}</td>", state(verdict), escape(&verdict.text()));
        let _ = write!(out, "<td>{}</td></tr>", escape(&verdict.spread_text()));
    }
    out.push_str("</tbody></table></div>");
}

fn write_table(out: &mut String, table: &Table) {
    // Give a class only to text columns, because most cells are numbers.
    let class = |column| if is_numeric(table, column) { "" } else { " class=\"text\"" };
    let _ = write!(out, "<div class=\"table\"><table><caption>{}</caption><thead><tr>", escape(&table.title));
    for (column, name) in table.head.iter().enumerate() {
        let _ = write!(out, "<th{}>{}</th>", class(column), escape(name));
    }
    out.push_str("</tr></thead><tbody>");
    for row in &table.rows {
        out.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let cell = escape(cell);
            let _ = match column {
                0 => write!(out, "<th scope=\"row\"><i class=\"dot {cell}\"></i>{cell}</th>"),
                _ => write!(out, "<td{}>{cell}</td>", class(column)),
            };
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>");
}

fn write_machine(out: &mut String, finding: &Finding) {
    out.push_str("<dl class=\"machine\">");
    let during = finding.disturbance.iter().flat_map(Disturbance::lines);
    for (name, value) in finding.machine.lines().into_iter().chain(during) {
        let _ = write!(out, "<div><dt>{name}</dt><dd>{}</dd></div>", escape(&value));
    }
    if finding.pairs > 1 {
        let _ = write!(out, "<div><dt>pairs</dt><dd>{}</dd></div>", finding.pairs);
    }
    out.push_str("</dl>");
}

fn state(verdict: &Verdict) -> &'static str {
    match verdict.is_met() {
        Some(true) => "met",
        Some(false) => "missed",
        None => "reported",
    }
}

/// Replaces ASCII operators with typographic symbols.
fn typeset(quantity: &str) -> String {
    let quantity = quantity.replace("<=", "\u{2264}").replace(">=", "\u{2265}");
    quantity.strip_suffix(" x").map(|value| format!("{value}\u{d7}")).unwrap_or(quantity)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests;
