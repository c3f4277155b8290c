// SPDX-License-Identifier: MIT
//! Expressions over measurements: `mean(response)[case=stock] / mean(response)[case=fair]`.
//!
//! A name is a value of a trial, or the number of an axis value. Statistics apply to a trial's samples. Brackets select
//! another case of the same turn, so a ratio compares measurements that were made one after the other. An expression
//! has no value if it needs a measurement that is missing.

use super::data::At;
use crate::statistics::{Spread, deviation, jain_index, mean, quantile};
use std::ops::{Add, Div, Mul, Sub};

type Operation = fn(f64, f64) -> f64;

#[derive(Clone, Debug)]
pub(super) enum Expression {
    Number(f64),
    Name(String),
    Statistic(Statistic, String),
    Published(String),
    Calculated(Operation, Box<Expression>, Box<Expression>),
    /// A statistic of the values of all turns.
    OfTurns(Statistic, Box<Expression>),
    /// The value in another case of the same turn.
    Elsewhere(Box<Expression>, Vec<(String, String)>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Statistic {
    Mean,
    Deviation,
    /// A fraction: 0 is the minimum, 1 the maximum.
    Quantile(f64),
    Count,
    Sum,
    Jain,
    /// Fraction of the samples within a range.
    Within(f64, f64),
}

const FUNCTIONS: &str = "mean, deviation, least, worst, p50, p99 and other percentiles, count, sum, jain, \
                         within(samples, from, to), smaller(a, b), larger(a, b), least_turn, greatest_turn, \
                         mean_turn, deviation_turn, published";

impl Expression {
    /// The error says what is wrong and what is allowed instead.
    pub fn parse(text: &str) -> Result<Expression, String> {
        let mut parser = Parser { text, at: 0 };
        let expression = parser.sum()?;
        match parser.rest() {
            "" => Ok(expression),
            rest => Err(format!("'{rest}' is not expected here: write an operator (+ - * /) before it, or remove it")),
        }
    }

    /// An expression that the check has accepted.
    pub fn checked(text: &str) -> Expression {
        Expression::parse(text).unwrap_or(Expression::Number(f64::NAN))
    }

    /// One value for each turn in which the expression has one.
    pub fn spread(&self, at: &At) -> Spread {
        Spread::of(at.turns().filter_map(|at| self.value(&at)).filter(|value| value.is_finite()))
    }

    /// `None` if a measurement is missing.
    pub fn value(&self, at: &At) -> Option<f64> {
        match self {
            Expression::Number(number) => Some(*number),
            Expression::Name(name) => at.value(name),
            Expression::Statistic(statistic, name) => statistic.of(at.samples(name)?),
            Expression::Published(name) => at.published(name),
            Expression::Calculated(operation, one, other) => Some(operation(one.value(at)?, other.value(at)?)),
            Expression::OfTurns(statistic, of) => {
                statistic.of(&at.turns().filter_map(|at| of.value(&at)).collect::<Vec<_>>())
            }
            Expression::Elsewhere(of, places) => of.value(&at.elsewhere(places)),
        }
    }

    /// Sample count of the statistic with the fewest samples; `None` if there is no statistic.
    pub fn samples(&self, at: &At) -> Option<usize> {
        match self {
            // Any number of samples is enough here: each sample is a client, or the count itself is the result.
            Expression::Statistic(Statistic::Jain | Statistic::Sum | Statistic::Count, _) => None,
            Expression::Statistic(_, name) => Some(at.samples(name).map_or(0, |samples| samples.len())),
            Expression::Calculated(_, one, other) => one.samples(at).into_iter().chain(other.samples(at)).min(),
            Expression::OfTurns(_, of) => at.turns().filter_map(|at| of.samples(&at)).min(),
            Expression::Elsewhere(of, places) => of.samples(&at.elsewhere(places)),
            Expression::Number(_) | Expression::Name(_) | Expression::Published(_) => None,
        }
    }

    /// Each name, with the axis values that brackets select for it.
    pub fn leaves(&self) -> Vec<(&Expression, Vec<&(String, String)>)> {
        match self {
            Expression::Calculated(_, one, other) => [one.leaves(), other.leaves()].concat(),
            Expression::OfTurns(_, of) => of.leaves(),
            Expression::Elsewhere(of, places) => {
                let with = |(leaf, more): (_, Vec<_>)| (leaf, more.into_iter().chain(places).collect());
                of.leaves().into_iter().map(with).collect()
            }
            _ => vec![(self, Vec::new())],
        }
    }
}

impl Statistic {
    fn of(self, samples: &[f64]) -> Option<f64> {
        if samples.is_empty() && self != Statistic::Count {
            return None;
        }
        let of_all = || samples.iter().copied();
        Some(match self {
            Statistic::Count => samples.len() as f64,
            Statistic::Mean => mean(samples),
            Statistic::Deviation => deviation(samples),
            Statistic::Quantile(part) => quantile(of_all(), part),
            Statistic::Sum => of_all().sum(),
            Statistic::Jain => jain_index(samples),
            Statistic::Within(from, to) => {
                let within = of_all().filter(|value| (from..=to).contains(value)).count();
                within as f64 / samples.len() as f64
            }
        })
    }

    fn named(name: &str) -> Option<Statistic> {
        Some(match name {
            "mean" => Statistic::Mean,
            "deviation" => Statistic::Deviation,
            "least" => Statistic::Quantile(0.0),
            "worst" => Statistic::Quantile(1.0),
            "count" => Statistic::Count,
            "sum" => Statistic::Sum,
            "jain" => Statistic::Jain,
            _ => {
                let percent: f64 = name.strip_prefix('p')?.parse().ok()?;
                (0.0..=100.0).contains(&percent).then_some(Statistic::Quantile(percent / 100.0))?
            }
        })
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn rest(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        &self.text[self.at..]
    }

    fn takes(&mut self, sign: char) -> bool {
        let takes = self.rest().starts_with(sign);
        self.at += if takes { sign.len_utf8() } else { 0 };
        takes
    }

    fn needs(&mut self, sign: char) -> Result<(), String> {
        match self.takes(sign) {
            true => Ok(()),
            false if self.rest().is_empty() => Err(format!("a '{sign}' is missing at the end")),
            false => Err(format!("a '{sign}' is missing before '{}'", self.rest())),
        }
    }

    fn sum(&mut self) -> Result<Expression, String> {
        self.chain([('+', f64::add), ('-', f64::sub)], Parser::product)
    }

    fn product(&mut self) -> Result<Expression, String> {
        self.chain([('*', f64::mul), ('/', f64::div)], Parser::factor)
    }

    /// Parses parts with these operators between them, from left to right.
    fn chain(
        &mut self,
        operators: [(char, Operation); 2],
        part: fn(&mut Self) -> Result<Expression, String>,
    ) -> Result<Expression, String> {
        let mut whole = part(self)?;
        while let Some((_, operation)) = operators.into_iter().find(|(sign, _)| self.takes(*sign)) {
            whole = Expression::Calculated(operation, Box::new(whole), Box::new(part(self)?));
        }
        Ok(whole)
    }

    fn factor(&mut self) -> Result<Expression, String> {
        let mut factor = if self.takes('(') {
            let inner = self.sum()?;
            self.needs(')')?;
            inner
        } else if self.rest().starts_with(|first: char| first.is_ascii_digit() || first == '-') {
            Expression::Number(self.number()?)
        } else {
            let name = self.name()?;
            if self.takes('(') { self.call(&name)? } else { Expression::Name(name) }
        };
        while self.takes('[') {
            factor = Expression::Elsewhere(Box::new(factor), self.places()?);
        }
        Ok(factor)
    }

    fn call(&mut self, function: &str) -> Result<Expression, String> {
        let expression = if let Some(statistic) = Statistic::named(function) {
            Expression::Statistic(statistic, self.name()?)
        } else {
            match function {
                "published" => Expression::Published(self.name()?),
                "least_turn" => Expression::OfTurns(Statistic::Quantile(0.0), Box::new(self.sum()?)),
                "greatest_turn" => Expression::OfTurns(Statistic::Quantile(1.0), Box::new(self.sum()?)),
                "mean_turn" => Expression::OfTurns(Statistic::Mean, Box::new(self.sum()?)),
                "deviation_turn" => Expression::OfTurns(Statistic::Deviation, Box::new(self.sum()?)),
                "smaller" => self.two(f64::min)?,
                "larger" => self.two(f64::max)?,
                "within" => {
                    let samples = self.name()?;
                    self.needs(',')?;
                    let from = self.number()?;
                    self.needs(',')?;
                    Expression::Statistic(Statistic::Within(from, self.number()?), samples)
                }
                _ => return Err(format!("there is no function '{function}': choose from {FUNCTIONS}")),
            }
        };
        self.needs(')')?;
        Ok(expression)
    }

    fn two(&mut self, operation: Operation) -> Result<Expression, String> {
        let one = self.sum()?;
        self.needs(',')?;
        Ok(Expression::Calculated(operation, Box::new(one), Box::new(self.sum()?)))
    }

    /// Parses the selected axis values after an opening bracket: `case=stock, load=noop]`.
    fn places(&mut self) -> Result<Vec<(String, String)>, String> {
        let inside = self.rest();
        let end = inside.find(']').ok_or("a ']' is missing at the end")?;
        self.at += end + 1;
        let place = |text: &str| {
            let (axis, value) =
                text.split_once('=').ok_or_else(|| format!("'{text}' does not select a case: write AXIS=VALUE"))?;
            Ok((axis.trim().to_owned(), value.trim().to_owned()))
        };
        inside[..end].split(',').map(place).collect()
    }

    fn number(&mut self) -> Result<f64, String> {
        let rest = self.rest();
        let is_of_number = |(at, one): (usize, char)| one.is_ascii_digit() || one == '.' || (one == '-' && at == 0);
        let length = rest.char_indices().take_while(|&one| is_of_number(one)).count();
        self.at += length;
        rest[..length].parse().map_err(|_| format!("'{rest}' does not begin with a number"))
    }

    fn name(&mut self) -> Result<String, String> {
        let rest = self.rest();
        let is_of_name = |one: &char| one.is_ascii_alphanumeric() || "_.".contains(*one);
        let length = rest.chars().take_while(is_of_name).count();
        self.at += length;
        match length {
            0 if rest.is_empty() => Err("at the end, a name or a number is expected".to_owned()),
            0 => Err(format!("'{rest}' is not a name: write a measured name, or a function such as mean(response)")),
            _ => Ok(rest[..length].to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::data::tests::two_turns;
    use super::*;

    fn value(text: &str, case: &str) -> Option<f64> {
        let data = two_turns();
        Expression::parse(text).unwrap().value(&At::of(&data, &[("case", case)], 0))
    }

    #[test]
    fn operators_bind_as_usual_and_functions_take_samples() {
        assert_eq!(value("1 + 2 * 3 - 8 / (1 + 3)", "stock"), Some(5.0));
        assert_eq!(value("larger(1, -2) * smaller(3, 4)", "stock"), Some(3.0));
        assert_eq!(value("mean(response)", "stock"), Some(20.0));
        assert_eq!(value("p50(response) + worst(response) - least(response)", "stock"), Some(40.0));
        assert_eq!(value("within(response, 15, 30)", "stock"), Some(2.0 / 3.0));
        assert_eq!(value("count(response)", "stock"), Some(3.0));
    }

    #[test]
    fn brackets_choose_another_case_of_the_same_turn() {
        assert_eq!(value("mean(response)[case=stock] / mean(response)", "fair"), Some(10.0));
        assert_eq!(value("least_turn(mean(response))", "stock"), Some(20.0));
        assert_eq!(value("greatest_turn(mean(response))", "stock"), Some(40.0));
    }

    #[test]
    fn unmeasured_names_have_no_value() {
        assert_eq!(value("mean(response) + missing", "stock"), None);
        assert_eq!(value("mean(response)[case=nowhere]", "stock"), None);
    }

    #[test]
    fn sample_counts_apply_to_means_but_not_to_fairness() {
        let data = two_turns();
        let samples = |text: &str| Expression::parse(text).unwrap().samples(&At::of(&data, &[("case", "stock")], 0));
        assert_eq!((samples("mean(response) / 2"), samples("jain(response)"), samples("1")), (Some(3), None, None));
    }

    #[test]
    fn a_mistake_says_what_to_write() {
        let error = |text: &str| Expression::parse(text).unwrap_err();
        assert!(error("avg(response)").contains("choose from mean, deviation"), "{}", error("avg(response)"));
        assert!(error("mean(response").contains("')' is missing at the end"));
        assert!(error("1 2").contains("write an operator"));
        assert!(error("mean(response)[stock]").contains("write AXIS=VALUE"));
        assert!(error("1 +").contains("a name or a number is expected"));
    }
}
