//! The paper's two tables with our figures, and how all schedulers compare with the server's own.

use super::findings::{PUBLISHED_NO_OP, PUBLISHED_POLY_POINT, PUBLISHED_XMARK};
use super::{Leg, NO_OP, POLY_POINT, Speed, Tested, kinds, xmark};
use crate::papers::Published;
use crate::statistics::{Spread, median};
use crate::study::{Table, figure, percent, spread_figure};

/// Tests in the table of those that differ most.
const DIFFERING: usize = 10;

pub(super) fn all(speed: &Speed) -> Vec<Table> {
    vec![papers(speed), over_stock(speed), by_kind(speed), differing(speed)]
}

fn papers(speed: &Speed) -> Table {
    let head = [
        "",
        "classic",
        "smart",
        "stock",
        "fair",
        "smart over classic",
        "in the paper: old",
        "new",
        "new over old",
        "ours over the paper's",
    ];
    let mut table = Table::new("Tables 2 and 3: operations per second, and Xmark; medians of the turns", &head);
    let mut row = |name: &str, ours: &dyn Fn(Leg) -> Option<f64>, ratio: Spread, published: [Published; 2]| {
        let [old, new] = published.map(Published::value);
        let legs = [Leg::Classic, Leg::Smart, Leg::Stock, Leg::Fair];
        let ours = legs.map(|leg| ours(leg).map_or("-".to_owned(), figure));
        let theirs = [figure(old), figure(new), figure(new / old), figure(ratio.median / (new / old))];
        let cells = ours.into_iter().chain([spread_figure(&ratio)]).chain(theirs);
        table.rows.push(std::iter::once(name.to_owned()).chain(cells).collect());
    };
    for (name, label, published) in [("PolyPoint", POLY_POINT, PUBLISHED_POLY_POINT), ("NoOp", NO_OP, PUBLISHED_NO_OP)]
    {
        let tested = speed.table_2.iter().find(|test| test.label == label);
        let ratio = speed.table_2(label, Leg::Smart, Leg::Classic);
        row(name, &|leg| Some(tested?.rate(leg)), ratio, published);
    }
    let mark = |leg| Some(median(speed.xmarks.get(&leg)?.iter().copied()));
    row(speed.name_of_mark(), &mark, speed.xmark(Leg::Smart, Leg::Classic), PUBLISHED_XMARK);
    table
}

fn over_stock(speed: &Speed) -> Table {
    let mark = speed.name_of_mark();
    let head = [
        "scheduler",
        "PolyPoint",
        "NoOp",
        mark,
        "geometric mean",
        "tests within 2 %",
        "slower in every turn",
        "faster in every turn",
    ];
    let by_chance = speed.tests.len() as f64 * 0.5_f64.powi(speed.turns() as i32);
    let title = format!(
        "Over stock, medians of the turns ({}); of {} tests {by_chance:.0} would be slower in every turn by chance",
        speed.turns(),
        speed.tests.len()
    );
    let mut table = Table::new(title, &head);
    for leg in Leg::OTHERS {
        table.rows.push(vec![
            leg.title().to_owned(),
            spread_figure(&speed.table_2(POLY_POINT, leg, Leg::Stock)),
            spread_figure(&speed.table_2(NO_OP, leg, Leg::Stock)),
            spread_figure(&speed.xmark(leg, Leg::Stock)),
            spread_figure(&speed.geometric_mean(leg)),
            speed.close(leg).to_string(),
            speed.count(leg, |ratio| ratio.greatest < 1.0).to_string(),
            speed.count(leg, |ratio| ratio.least > 1.0).to_string(),
        ]);
    }
    table
}

/// Weighted means over stock, and what was left out.
fn by_kind(speed: &Speed) -> Table {
    let head = ["tests", "measured", "part of Xmark's weight", "classic", "smart", "fair", "stock again"];
    let mut table = Table::new("Over stock by kind of test, weighted as in Xmark", &head);
    for kind in kinds::all() {
        let tests: Vec<&Tested> = speed.tests.iter().filter(|test| kinds::of(&test.label) == kind).collect();
        let others = speed.left_out.keys().filter(|label| kinds::of(label) == kind).count();
        let ratio = |leg| {
            let ratio = median(
                (0..speed.turns())
                    .map(|turn| xmark::weighted_mean(tests.iter().map(|test| (test.weight, test.ratio(leg, turn))))),
            );
            if tests.is_empty() { "left out".to_owned() } else { figure(ratio) }
        };
        let measured = format!("{} of {}", tests.len(), tests.len() + others);
        let part = percent(speed.part_of_weight(tests.iter().copied()));
        table.rows.push([kind.to_owned(), measured, part].into_iter().chain(Leg::OTHERS.map(ratio)).collect());
    }
    table
}

fn differing(speed: &Speed) -> Table {
    let head = ["test", "weight", "stock /s", "fair (turns)", "stock again (turns)", "smart", "classic", "fair is"];
    let mut table = Table::new("Over stock by x11perfcomp: where fair differs most", &head);
    let mut tests: Vec<&Tested> = speed.tests.iter().collect();
    tests.sort_by(|a, b| difference(b).total_cmp(&difference(a)));
    for test in tests.into_iter().take(DIFFERING) {
        table.rows.push(vec![
            test.label.clone(),
            test.weight.to_string(),
            figure(test.rate(Leg::Stock)),
            spread_figure(&test.spread(Leg::Fair)),
            spread_figure(&test.spread(Leg::Again)),
            figure(test.spread(Leg::Smart).median),
            figure(test.spread(Leg::Classic).median),
            word(&test.spread(Leg::Fair), &test.spread(Leg::Again)).to_owned(),
        ]);
    }
    table
}

/// As far for half as for double.
fn difference(test: &Tested) -> f64 {
    test.spread(Leg::Fair).median.ln().abs()
}

/// What can be said when stock itself comes out like this.
fn word(fair: &Spread, again: &Spread) -> &'static str {
    match () {
        () if fair.count < 2 => "measured once",
        () if fair.greatest < again.least.min(1.0) => "slower",
        () if fair.least > again.greatest.max(1.0) => "faster",
        () => "within noise",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stock_itself_may_come_to_is_called_noise() {
        let told = |fair: [f64; 2], again: [f64; 2]| word(&Spread::of(fair), &Spread::of(again));
        assert_eq!(told([0.90, 0.91], [0.97, 1.02]), "slower");
        assert_eq!(told([0.97, 0.98], [0.97, 1.02]), "within noise");
        assert_eq!(told([1.04, 1.05], [0.97, 1.02]), "faster");
        assert_eq!(told([0.99, 1.05], [1.00, 1.01]), "within noise");
        assert_eq!(word(&Spread::of([0.5]), &Spread::of([1.0])), "measured once");
    }
}
