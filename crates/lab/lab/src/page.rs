// SPDX-License-Identifier: MIT
//! Findings as one self-contained page: it loads nothing from the network, has light and dark colours, and is readable
//! without scripts.
//!
//! Text, verdicts and tables are generated here. The browser draws the charts from data in the page.

use crate::disturbance::Disturbance;
use crate::experiments;
use crate::render::is_numeric;
use crate::results::{Build, Finding, conclusions, with_figures};
use crate::study::{Chart, GoalCheck, Table};
use anyhow::Result;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::fmt::Write;

const FRAME: &str = include_str!("page/page.html");
const STYLE: &str = concat!(include_str!("../../../../web/colours.css"), include_str!("page/page.css"));
const SCRIPT: &str = concat!(
    "\"use strict\";\n",
    include_str!("../../../../web/format.js"),
    include_str!("../../../../web/dom.js"),
    include_str!("../../../../web/timeline.js"),
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
        let _ = write!(body, "<section id=\"papers\"><h2>{PAPERS}</h2>{}</section>", papers(findings));
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
        let goals = finding.study.verdicts.iter().filter_map(GoalCheck::is_met);
        let (met, goals) = (goals.clone().filter(|&met| met).count(), goals.count());
        let state = if met == goals { "met" } else { "missed" };
        let score = if goals > 0 { format!("<span class=\"{state}\">{met}/{goals}</span>") } else { String::new() };
        let mark = build.mark(finding).map_or(String::new(), |mark| format!(" <small>{mark}</small>"));
        format!("<li><a href=\"#{}\">{}</a> {score}{mark}</li>", finding.experiment, escape(&finding.study.title))
    });
    let papers = format!("<li><a href=\"#papers\">{PAPERS}</a></li>");
    format!("<nav><ul>{}{papers}</ul></nav>", links.collect::<String>())
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
    let (scatters, others): (Vec<_>, Vec<_>) = study.charts.iter().partition(|one| matches!(one, Chart::Scatter(_)));
    scatters.into_iter().for_each(|chart| write_chart(out, chart, charts));
    out.extend(study.tables.iter().map(table));
    others.into_iter().for_each(|chart| write_chart(out, chart, charts));
    out.extend(page_of(&finding.experiment));
    *out += &match study.verdicts.len() {
        0 => String::new(),
        1..=MOST_CARDS => format!("<div class=\"cards\">{}</div>", study.verdicts.iter().map(card).collect::<String>()),
        _ => verdicts(&study.verdicts),
    };
    for doubt in build.caution(finding).into_iter().chain(finding.noise()) {
        let _ = write!(out, "<p class=\"quick\">{}</p>", escape(&doubt));
    }
    let during = finding.disturbance.iter().flat_map(Disturbance::lines);
    let pairs = (finding.pairs > 1).then(|| ("pairs", finding.pairs.to_string()));
    let facts = finding.machine.lines().into_iter().chain(during).chain(pairs);
    let facts = facts.map(|(name, value)| format!("<div><dt>{name}</dt><dd>{}</dd></div>", escape(&value)));
    let _ = write!(out, "<dl class=\"machine\">{}</dl></section>", facts.collect::<String>());
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

fn card(verdict: &GoalCheck) -> String {
    let outcome = match verdict.is_met() {
        None => verdict.text(),
        Some(_) => format!("goal {}: {}", typeset(&verdict.goal_text()), verdict.text()),
    };
    let [what, value, outcome] = [&verdict.what, &typeset(&verdict.value_text()), &outcome].map(|text| escape(text));
    format!(
        "<div class=\"card\"><div class=\"what\">{what}</div><div class=\"value\">{value}</div>\
         <div class=\"{}\">{outcome}</div></div>",
        state(verdict)
    )
}

fn verdicts(verdicts: &[GoalCheck]) -> String {
    let head = ["measured", "goal", "verdict", "range of the pairs"].map(|name| format!("<th>{name}</th>")).concat();
    let row = |verdict: &GoalCheck| {
        let [value, goal] = [verdict.value_text(), verdict.goal_text()].map(|text| escape(&typeset(&text)));
        let [what, text, range] = [&verdict.what, &verdict.text(), &verdict.spread_text()].map(|text| escape(text));
        let class = state(verdict);
        format!(
            "<tr><th scope=\"row\">{what}</th><td>{value}</td><td>{goal}</td><td class=\"{class}\">{text}</td>\
             <td>{range}</td></tr>"
        )
    };
    framed("Goals", &format!("<th class=\"text\"></th>{head}"), verdicts.iter().map(row))
}

fn table(table: &Table) -> String {
    // Give a class only to text columns, because most cells are numbers.
    let class = |column| if is_numeric(table, column) { "" } else { " class=\"text\"" };
    let head = table.head.iter().enumerate();
    let head = head.map(|(column, name)| format!("<th{}>{}</th>", class(column), escape(name)));
    let cell = |(column, cell): (usize, &String)| match (column, escape(cell)) {
        (0, cell) => format!("<th scope=\"row\"><i class=\"dot {cell}\"></i>{cell}</th>"),
        (_, cell) => format!("<td{}>{cell}</td>", class(column)),
    };
    let row = |row: &Vec<String>| format!("<tr>{}</tr>", row.iter().enumerate().map(cell).collect::<String>());
    framed(&escape(&table.title), &head.collect::<String>(), table.rows.iter().map(row))
}

fn framed(caption: &str, head: &str, rows: impl Iterator<Item = String>) -> String {
    format!(
        "<div class=\"table\"><table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{}</tbody>\
         </table></div>",
        rows.collect::<String>()
    )
}

fn state(verdict: &GoalCheck) -> &'static str {
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

static ITEMS: &str = include_str!("../../../../docs/papers.md");

/// The prose of an experiment's page, docs/experiments/NAME.md, as HTML; `None` if there is no page. The prose is thus
/// written only once. Tables come from the report itself, and links are reduced to their text.
fn page_of(name: &str) -> Option<String> {
    experiments::page(name).map(|page| without_links(&prose(page)))
}

/// The items of the papers with the figures of these results, as HTML.
fn papers(found: &[Finding]) -> String {
    let items = with_figures(ITEMS, found);
    let title = items.lines().next().unwrap_or_default();
    // Put the page's headings below the level of the report's.
    without_links(&items.replacen(title, "", 1).replace("\n## ", "\n### "))
}

fn without_links(markdown: &str) -> String {
    let is_kept = |event: &Event| {
        !matches!(event, Event::Start(Tag::Link { .. } | Tag::Image { .. }) | Event::End(TagEnd::Link | TagEnd::Image))
            && !matches!(event, Event::Html(_) | Event::InlineHtml(_))
    };
    let mut out = String::new();
    pulldown_cmark::html::push_html(&mut out, Parser::new_ext(markdown, Options::ENABLE_TABLES).filter(is_kept));
    out
}

/// The page without its title, its command and its section of figures.
fn prose(page: &str) -> String {
    let command = |line: &&str| !line.starts_with("    xqos bench run ");
    let body: Vec<&str> = page.lines().skip(1).filter(command).collect();
    let body = body.join("\n");
    let sections = body.split("\n## ").filter(|section| !section.starts_with("Figures"));
    // Put the page's headings below the level of the report's sections.
    sections.collect::<Vec<_>>().join("\n#### ")
}

#[cfg(test)]
mod tests;
