// SPDX-License-Identifier: MIT
//! The paper's hypotheses for today: a line each, computed from the cells. Nothing here knows the answer beforehand.
//!
//! What is compared is compared program by program, where both cells are there; the median over the programs is told. A
//! cell that was not quiet within its limit bounds its figure from below, and the line says so.

use super::case::{BASE, Transport};
use super::{Grid, Measured, foretold};
use crate::experiments::far::{Line, Program, delay_title};
use crate::papers::Published;
use crate::statistics::Spread;
use crate::study::{figure, percent, spread_figure};

const LONG: Line = Line { delay_us: 100_000, ..BASE };
const FAR: Line = Line { delay_us: 10_000, ..BASE };
const SLOW: Line = Line { kbit_per_s: 10, ..BASE };
const SLOWER: Line = Line { kbit_per_s: 100, ..BASE };

/// A desktop's background, over a link of 10 kb/s.
pub(super) const COMPRESSED_LINK: Published = Published("packard-gettys-2003.compressed_link");

/// Less than so much of the other's is better: a tenth is what starts of a program differ by.
const MENDED: f64 = 0.9;

/// A quotient over programs.
struct Compared {
    spread: Spread,
    /// One of the cells had not come to its end.
    is_bound: bool,
}

pub(super) fn all(grid: &Grid) -> Vec<String> {
    vec![latency(grid), compression(grid), local_answers(grid), compressed_link(grid), fonts(grid)]
}

/// The worst of these lines that was measured with all these transports, and on which more than one of them is a bound for
/// less than half of the programs.
fn worst(grid: &Grid, lines: [Line; 2], transports: &[Transport]) -> Option<Line> {
    let tells = |line: &Line| {
        let of = |program| -> Option<Vec<&Measured>> {
            transports.iter().map(|&transport| grid.measured(program, transport, *line)).collect()
        };
        let all: Vec<_> = Program::ALL.into_iter().filter_map(of).collect();
        let is_told = |cells: &&Vec<&Measured>| cells.iter().filter(|measured| !measured.is_quiet).count() < 2;
        !all.is_empty() && all.iter().filter(is_told).count() * 2 > all.len()
    };
    lines.into_iter().find(tells)
}

fn compared(grid: &Grid, above: (Transport, Line), below: (Transport, Line)) -> Option<Compared> {
    let of = |program, (transport, line)| grid.measured(program, transport, line);
    let both = |program| Some((of(program, above)?, of(program, below)?));
    let pairs: Vec<(&Measured, &Measured)> = Program::ALL.into_iter().filter_map(both).collect();
    let usable = || pairs.iter().filter(|(_, below)| below.delay_s > 0.0);
    let spread = Spread::of(usable().map(|(above, below)| above.delay_s / below.delay_s));
    (spread.count > 0).then(|| Compared { spread, is_bound: pairs.iter().any(|(a, b)| !a.is_quiet || !b.is_quiet) })
}

/// What a line adds to the delay at 10 Mb/s and 0.1 ms: with one way to carry X over the same with another. Each is
/// held against itself, since compression saves much at 10 Mb/s already.
fn added(grid: &Grid, above: Transport, below: Transport, line: Line) -> Option<Compared> {
    let cells = |program, transport| [line, BASE].map(|line| grid.measured(program, transport, line));
    let both = |program| {
        let [Some(above), Some(above_base)] = cells(program, above) else { return None };
        let [Some(below), Some(below_base)] = cells(program, below) else { return None };
        if !above.is_quiet && !below.is_quiet {
            // Bounds from below, of which the quotient says nothing.
            return None;
        }
        let is_bound = [above, above_base, below, below_base].iter().any(|measured| !measured.is_quiet);
        let ratio = (above.delay_s - above_base.delay_s) / (below.delay_s - below_base.delay_s);
        (ratio.is_finite() && ratio >= 0.0).then_some((ratio, is_bound))
    };
    let pairs: Vec<(f64, bool)> = Program::ALL.into_iter().filter_map(both).collect();
    let spread = Spread::of(pairs.iter().map(|(ratio, _)| *ratio));
    (spread.count > 0).then(|| Compared { spread, is_bound: pairs.iter().any(|(_, is_bound)| *is_bound) })
}

impl Compared {
    fn text(&self) -> String {
        let bound = if self.is_bound { " (some not quiet within their limit)" } else { "" };
        format!("{} x{bound}", spread_figure(&self.spread))
    }
}

fn latency(grid: &Grid) -> String {
    const WHAT: &str = "Latency dominates bandwidth (paper: yes)";
    let raw = [Transport::Raw];
    let (Some(long), Some(slow)) = (worst(grid, [LONG, FAR], &raw), worst(grid, [SLOW, SLOWER], &raw)) else {
        return unmeasured(WHAT);
    };
    let base = (Transport::Raw, BASE);
    let both = (compared(grid, (Transport::Raw, long), base), compared(grid, (Transport::Raw, slow), base));
    let (Some(by_delay), Some(by_rate)) = both else { return unmeasured(WHAT) };
    let verdict = if by_delay.spread.median > by_rate.spread.median { "yes" } else { "no" };
    format!(
        "{WHAT}; today {verdict}: raw X's delay grows {} from 0.1 to {}, and {} from 10 Mb/s to {} kb/s.",
        by_delay.text(),
        delay_title(long.delay_us),
        by_rate.text(),
        slow.kbit_per_s
    )
}

fn compression(grid: &Grid) -> String {
    const WHAT: &str = "ssh's compression mends bandwidth and not latency (paper: yes)";
    let both = [Transport::Raw, Transport::SshC];
    let (Some(long), Some(slow)) = (worst(grid, [LONG, FAR], &both), worst(grid, [SLOW, SLOWER], &both)) else {
        return unmeasured(WHAT);
    };
    let over_raw = |line| added(grid, Transport::SshC, Transport::Raw, line);
    let (Some(on_slow), Some(on_long)) = (over_raw(slow), over_raw(long)) else { return unmeasured(WHAT) };
    let verdict = match (on_slow.spread.median < MENDED, on_long.spread.median < MENDED) {
        (true, false) => "yes",
        (true, true) => "it mends both",
        (false, _) => "no",
    };
    format!(
        "{WHAT}; today {verdict}: what {} adds to the delay is {} as much with ssh -C as with raw X, and what {} adds {}.",
        slow.title(),
        on_slow.text(),
        long.title(),
        on_long.text()
    )
}

/// Nothing that answers as LBX did can be run any more, so its line is foretold.
fn local_answers(grid: &Grid) -> String {
    const WHAT: &str = "A proxy that answers locally (LBX) does no better than ssh (paper: yes)";
    let (lbx, strict) = (foretold::added(grid, 1, LONG), foretold::added(grid, 2, LONG));
    if lbx.count == 0 {
        return unmeasured(WHAT);
    }
    let verdict = if lbx.median < MENDED { "no, by what is foretold" } else { "yes" };
    format!(
        "{WHAT}; today {verdict}: what {} adds would be {} x as much behind LBX's answers as with raw X, and {} x behind a \
         proxy that answers all that it can know in strict order.",
        LONG.title(),
        spread_figure(&lbx),
        spread_figure(&strict)
    )
}

fn compressed_link(grid: &Grid) -> String {
    let images = COMPRESSED_LINK.value();
    let what = format!(
        "A compressed 10 kb/s link carries images at an effective {} Mb/s (paper, a desktop's background)",
        figure(images)
    );
    let lines = Line::DELAYS.map(|delay_us| Line { kbit_per_s: 10, delay_us });
    let cells = lines.iter().flat_map(|&line| Program::ALL.map(|program| (program, line)));
    let rates = cells.filter_map(|(program, line)| {
        let measured = grid.measured(program, Transport::SshC, line)?;
        Some((measured.effective_kbit_per_s(), program))
    });
    match rates.max_by(|one, other| one.0.total_cmp(&other.0)) {
        None => unmeasured(&what),
        Some((kbit_per_s, program)) => {
            let verdict = if kbit_per_s >= images * 1e3 { "yes" } else { "programs that start are not images" };
            let (rate, times) = (figure(kbit_per_s), figure(kbit_per_s / 10.0));
            format!("{what}; today {verdict}: at most {rate} kb/s ({}), {times} times the link's.", program.title())
        }
    }
}

/// Figure 8: at 1 Mb/s, over latency.
fn fonts(grid: &Grid) -> String {
    let faster = 1.0 - Published("packard-gettys-2003.client_fonts").value();
    let what = format!(
        "Client-side fonts are faster to start than core fonts, by about {} (paper, Mozilla at 1 Mb/s)",
        percent(faster)
    );
    let lines = Line::DELAYS.map(|delay_us| Line { kbit_per_s: 1_000, delay_us });
    let of = |line| {
        let fonts = [Program::XtermFa, Program::Xterm].map(|program| grid.measured(program, Transport::Raw, line));
        let [client, core] = [fonts[0]?, fonts[1]?];
        (core.delay_s > 0.0).then(|| (line.delay_us, client.delay_s / core.delay_s))
    };
    let all: Vec<(u64, f64)> = lines.into_iter().filter_map(of).collect();
    if all.is_empty() {
        return unmeasured(&what);
    }
    let verdict = match all.iter().filter(|(_, ratio)| *ratio < 1.0).count() {
        count if count == all.len() => "yes",
        0 => "no",
        _ => "not at each latency",
    };
    let list: Vec<_> = all.iter().map(|(us, ratio)| format!("{} x at {}", figure(*ratio), delay_title(*us))).collect();
    format!("{what}; today {verdict}: xterm -fa has of xterm's delay {}.", list.join(", "))
}

fn unmeasured(what: &str) -> String {
    format!("{what}; today: its cells are not measured yet.")
}

impl Measured {
    /// Bytes of X over the time that the link needed for them.
    pub(super) fn effective_kbit_per_s(&self) -> f64 {
        if self.link_s > 0.0 { self.x_bytes as f64 * 8.0 / 1e3 / self.link_s } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::invented;
    use super::*;

    #[test]
    fn the_lines_follow_from_the_cells() {
        let lines = all(&invented());
        assert_eq!(lines.len(), 5);
        // 60 kB over 10 kb/s are 48 s, 100 round trips of 200 ms are 20 s.
        assert!(lines[0].contains("today no:"), "{}", lines[0]);
        assert!(lines[1].contains("today yes:"), "{}", lines[1]);
        assert!(lines[2].contains("not measured yet"), "{}", lines[2]);
        assert!(lines[3].contains("not images") && lines[3].contains("90.1 kb/s"), "{}", lines[3]);
        assert!(lines[4].contains("today yes:") && lines[4].contains("at 100 ms"), "{}", lines[4]);
    }

    #[test]
    fn two_cells_that_were_cut_off_are_not_compared() {
        let mut grid = invented();
        for cell in grid.cells.iter_mut().filter(|cell| cell.case.line == SLOW) {
            if let super::super::cell::Outcome::Measured(measured) = &mut cell.outcome {
                (measured.is_quiet, measured.delay_s) = (false, 60.0);
            }
        }
        let line = compression(&grid);
        assert!(line.contains("today yes: what 100 kb/s"), "{line}");
    }

    #[test]
    fn what_is_not_measured_is_not_answered() {
        let none = all(&Grid { cells: Vec::new(), wanted: 500 });
        assert!(none.iter().all(|line| line.contains("not measured yet")), "{none:#?}");
    }
}
