// SPDX-License-Identifier: MIT
//! Checks a file before anything is measured. Each mistake is reported with what to write instead.

use super::Mistake;
use super::case::Case;
use super::data::{AxisValues, Cell, cells, filled};
use super::expression::Expression;
use super::format::{Column, Definition};
use super::measure::Measure;
use super::stage::{ALWAYS, OF_A_LOAD};
use super::study::{BY, KINDS, SHOWN};
use crate::papers;
use std::collections::{BTreeMap, BTreeSet};

/// Number of turns between new servers: `turn`, `server`, or `12 turns`.
pub(super) fn turns(text: &str) -> Option<u32> {
    if ["turn", "server"].contains(&text) {
        Some(1)
    } else {
        text.strip_suffix(" turns")?.parse().ok().filter(|&turns| turns > 0)
    }
}

struct Check<'a> {
    definition: &'a Definition,
    axes: &'a [AxisValues],
    /// Names of everything that at least one case measures, including the figures that the user's own program prints.
    found: BTreeSet<String>,
}

pub(super) fn check(definition: &Definition, axes: &[AxisValues], cases: &[Case]) -> Result<(), Mistake> {
    let check = Check { definition, axes, found: cases.iter().flat_map(|case| found(case, definition)).collect() };
    if let Some(unused) = definition.server.keys().find(|name| cases.iter().all(|case| case.server.0 != **name)) {
        let what = format!("no case uses the server '{unused}': write server = \"{unused}\" in one, or remove it");
        return Err(Mistake::at(&format!("[server.{unused}]"), what));
    }
    check.order()?;
    check.names()?;
    for table in &definition.table {
        let each = [table.each.as_slice(), table.rows.as_slice()].concat();
        check.axes_of(&each)?;
        check.only(&table.only)?;
        for Column(_, value, how) in &table.columns {
            check.expression(value, &each, "rows")?;
            check.one_of(how.as_deref(), &SHOWN, "a column is shown as")?;
        }
    }
    for verdict in &definition.verdict {
        let each = [verdict.each.as_slice(), verdict.across.as_slice()].concat();
        check.axes_of(&each)?;
        check.only(&verdict.only)?;
        check.expression(&verdict.value, &each, "each")?;
        check.one_of(verdict.by.as_deref(), &BY, "several cases become one value by")?;
        if verdict.by.is_some() == verdict.across.is_empty() {
            let what = "a verdict across axes needs both: across = [\"AXIS\"] and by = \"largest\"";
            return Err(Mistake::at(&verdict.key, what));
        }
    }
    for chart in &definition.chart {
        check.one_of(Some(&chart.kind), &KINDS, "a chart is")?;
        let mut each = [std::slice::from_ref(&chart.of), &chart.groups, &chart.each].concat();
        check.axes_of(&each)?;
        check.only(&chart.only)?;
        each.extend(chart.x.iter().filter(|x| check.axis(x).is_some()).cloned());
        check.expression(&chart.y, &each, "groups")?;
    }
    if let Some(answer) = &definition.answer {
        for (value, _) in answer.figures.values() {
            check.expression(value, &[], "figures")?;
        }
    }
    Ok(())
}

/// Names of all samples and values that a trial of the case has.
fn found(case: &Case, definition: &Definition) -> Vec<String> {
    let mut found: Vec<String> = case.measure.finds().chain(ALWAYS.split(' ').map(str::to_owned)).collect();
    found.extend(["share", "work", "work_per_cpu"].map(str::to_owned));
    found.extend(case.loads.iter().flat_map(|load| OF_A_LOAD.map(|name| format!("{name}.{}", load.name))));
    if case.trace.is_some() {
        found.extend(["records", "lost"].map(str::to_owned));
    }
    if case.measure == Measure::Command {
        found.extend(definition.setting.prints.iter().flatten().cloned());
    }
    found
}

impl Check<'_> {
    fn axis(&self, name: &str) -> Option<&AxisValues> {
        self.axes.iter().find(|axis| axis.name == name)
    }

    /// `at` is the text that names the axis.
    fn known_axis(&self, name: &str, at: &str) -> Result<&AxisValues, Mistake> {
        let known = || self.axes.iter().map(|axis| axis.name.as_str()).collect::<Vec<_>>().join(", ");
        self.axis(name).ok_or_else(|| Mistake::at(at, format!("there is no axis '{name}', only {}", known())))
    }

    fn axes_of(&self, names: &[String]) -> Result<(), Mistake> {
        names.iter().try_for_each(|name| self.known_axis(name, name).map(drop))
    }

    fn only(&self, only: &BTreeMap<String, Vec<String>>) -> Result<(), Mistake> {
        for (name, values) in only {
            self.known_axis(name, name)?;
            values.iter().try_for_each(|value| self.value_of(name, value, value))?;
        }
        Ok(())
    }

    fn value_of(&self, axis: &str, value: &str, at: &str) -> Result<(), Mistake> {
        let found = self.known_axis(axis, at)?;
        if found.setting(value).is_some() {
            return Ok(());
        }
        let values: Vec<&str> = found.values.iter().map(|(name, _)| name.as_str()).collect();
        Err(Mistake::at(at, format!("'{axis}' has no value '{value}', only {}", values.join(", "))))
    }

    fn one_of(&self, word: Option<&str>, known: &[&str], what: &str) -> Result<(), Mistake> {
        match word.filter(|word| !known.contains(word)) {
            Some(word) => Err(Mistake::at(word, format!("{what} {}, not '{word}'", known.join(", ")))),
            None => Ok(()),
        }
    }

    fn order(&self) -> Result<(), Mistake> {
        let order = &self.definition.order;
        self.axes_of(&order.outside)?;
        order.without.iter().try_for_each(|without| self.only(without))?;
        if let Some(text) = order.new_servers.as_deref().filter(|&text| text != "case" && turns(text).is_none()) {
            let what = format!("'{text}' is not allowed for new_servers: write turn, server, case, or \"12 turns\"");
            return Err(Mistake::at(text, what));
        }
        if order.keep_loads && order.new_servers.as_deref() == Some("case") {
            let what = "loads cannot be kept with new servers in each case: write new_servers = \"turn\"";
            return Err(Mistake::at("keep_loads", what));
        }
        Ok(())
    }

    /// Checks the keys of papers' figures.
    fn names(&self) -> Result<(), Mistake> {
        let of_axes = self.axes.iter().flat_map(|axis| &axis.values).map(|(_, setting)| setting);
        let settings = of_axes.chain([&self.definition.setting]);
        for key in settings.filter_map(|setting| setting.published.as_ref()).flat_map(BTreeMap::values) {
            let figure = key.split('(').next().unwrap_or(key);
            if papers::value(figure).is_none() && papers::cell(figure, 0, 0).is_none() {
                let what = format!("no file of lab/papers has a figure '{key}': write PAPER.FIGURE");
                return Err(Mistake::at(key, what));
            }
        }
        Ok(())
    }

    /// `bound` lists the axes whose value is fixed where the expression is used.
    fn expression(&self, text: &str, bound: &[String], write: &str) -> Result<(), Mistake> {
        // Replace names in braces with the first value of each axis, which is enough to check the rest.
        let cell: Cell = cells(&self.axes.iter().collect::<Vec<_>>()).into_iter().next().unwrap_or_default();
        let full = filled(text, &cell);
        let expression = Expression::parse(&full).map_err(|what| Mistake::at(text, what))?;
        expression.leaves().into_iter().try_for_each(|(leaf, places)| self.leaf(leaf, &places, bound, text, write))
    }

    fn leaf(
        &self,
        leaf: &Expression,
        places: &[&(String, String)],
        bound: &[String],
        text: &str,
        write: &str,
    ) -> Result<(), Mistake> {
        places.iter().try_for_each(|(axis, value)| self.value_of(axis, value, text))?;
        let name = match leaf {
            Expression::Name(name) | Expression::Statistic(_, name) => name,
            _ => return Ok(()),
        };
        let is_open =
            |axis: &&AxisValues| !bound.contains(&axis.name) && !places.iter().any(|(one, _)| *one == axis.name);
        if self.axis(name).is_some() {
            return Ok(());
        }
        let is_named = text.contains('{') && OF_A_LOAD.iter().any(|of| name.starts_with(&format!("{of}.")));
        if !self.found.contains(name) && !is_named {
            let known: Vec<&str> = self.found.iter().map(String::as_str).collect();
            return Err(Mistake::at(text, format!("nothing measures '{name}': choose from {}", known.join(", "))));
        }
        match self.axes.iter().find(is_open) {
            Some(axis) => Err(Mistake::at(
                text,
                format!("'{name}' depends on {0}: write {name}[{0}=VALUE], or add {0} to {write}", axis.name),
            )),
            None => Ok(()),
        }
    }
}
