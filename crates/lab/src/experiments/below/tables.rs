// SPDX-License-Identifier: MIT
//! What was found on servers that are served from below, in tables and verdicts.

use super::{Below, CLIENTS, Cost, Host, OfLoad, OfReservation, OfServer};
use crate::experiments::trial::Trial;
use crate::goals::Key;
use crate::statistics::{Spread, geometric_mean, median};
use crate::study::{Columns, Goal, Row, Study, Table, Verdict, figure, spread_figure};

impl Below {
    pub fn tables(&self) -> Study {
        let mut study = Study {
            title: "Servers served from below".to_owned(),
            question: format!(
                "A server that exports nothing, as Xwayland, is scheduled by what it asks of libc. What does that do for \
                 a light client beside {CLIENTS} busy ones, what does it cost, and how exact are shares?"
            ),
            notes: notes(),
            ..Study::default()
        };
        for server in &self.servers {
            study.tables.extend(server.loads.iter().map(|load| load.table(&server.name)));
            study.tables.push(server.table_of_costs());
            study.tables.push(server.table_of_shares());
            study.verdicts.extend(server.verdicts());
        }
        study
    }
}

impl OfLoad {
    fn of(&self, host: Host) -> Vec<&Trial> {
        self.trials.iter().filter(|(is, _)| *is == host).map(|(_, trial)| trial).collect()
    }

    /// Mean response of a stock server over that of this one, within a pair.
    fn better(&self, host: Host) -> Spread {
        let pairs = self.of(Host::Stock).into_iter().zip(self.of(host));
        Spread::of(pairs.map(|(stock, served)| mean_ms(stock) / mean_ms(served)))
    }

    /// Work of the twelve over what a stock server did for them with the same processor time.
    fn work(&self, host: Host) -> Spread {
        let per_s = |trial: &Trial| trial.operations.iter().sum::<f64>() / trial.server_cpu_s;
        let pairs = self.of(Host::Stock).into_iter().zip(self.of(host));
        Spread::of(pairs.map(|(stock, served)| per_s(served) / per_s(stock)))
    }

    fn table(&self, server: &str) -> Table {
        let hosts = [Host::Stock, Host::Libc, Host::Dix].into_iter().filter(|&host| !self.of(host).is_empty());
        let better = |row: &Row<Trial>, value: fn(&OfLoad, Host) -> Spread| {
            let host = [Host::Libc, Host::Dix].into_iter().find(|host| host.name() == row.name);
            host.map_or("1".to_owned(), |host| spread_figure(&value(self, host)))
        };
        Columns::of(
            format!("{server}: a light client beside {CLIENTS} x {}", self.test),
            hosts.map(|host| Row::new(host.name(), self.of(host))),
        )
        .name("host")
        .median("mean ms", mean_ms)
        .median("p99 ms", |trial| trial.series.response_ms().p99)
        .max("worst ms", |trial| trial.series.response_ms().worst)
        .cell("better than stock", |row| better(row, OfLoad::better))
        .cell("work for a processor's second, over stock", |row| better(row, OfLoad::work))
        .table()
    }
}

impl OfServer {
    fn costs(&self, test: &str, value: impl Fn(&Cost) -> f64) -> Spread {
        Spread::of(self.costs.iter().filter(|cost| cost.test == test).map(value))
    }

    fn tests(&self) -> Vec<&str> {
        let mut tests: Vec<&str> = self.costs.iter().map(|cost| cost.test.as_str()).collect();
        tests.dedup();
        tests
    }

    fn table_of_costs(&self) -> Table {
        Columns::of(
            format!("{}: processor time of the server for an operation, one client alone", self.name),
            self.tests(),
        )
        .cell("test", |test| (*test).to_owned())
        .cell("stock ns", |test| figure(self.costs(test, |cost| cost.stock_ns).median))
        .cell("libc ns", |test| figure(self.costs(test, |cost| cost.libc_ns).median))
        .cell("stock over libc", |test| spread_figure(&self.costs(test, |cost| cost.stock_ns / cost.libc_ns)))
        .table()
    }

    fn table_of_shares(&self) -> Table {
        Columns::of(
            format!("{}: hard reservations of a client that always asks, from below", self.name),
            &self.reservations,
        )
        .cell("Q/T ms", |one| format!("{}/{}", one.budget_ms, one.period_ms))
        .cell("asked %", |one| figure(one.asked() * 100.0))
        .cell("share %", |one| spread_figure(&Spread::of(one.measured.iter().map(|given| given.share() * 100.0))))
        .cell("distance, points", |one| format!("{:+.2}", one.distance()))
        .table()
    }

    fn verdicts(&self) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        let keys = [Key("below.ellipse100_better"), Key("below.noop_better"), Key("below.getimagexy100_better")];
        for (load, key) in self.loads.iter().zip(keys) {
            let what = format!("{}, {}: mean response better than stock", self.name, load.test);
            verdicts.push(Verdict::of_spread(what, load.better(Host::Libc), "x", Goal::of(key)));
            let what = format!("{}, {CLIENTS} x {}: work over stock's", self.name, load.test);
            verdicts.push(Verdict::of_spread(what, load.work(Host::Libc), "", Goal::of(Key("below.work"))));
        }
        let costs: Vec<f64> =
            self.tests().iter().map(|test| self.costs(test, |cost| cost.stock_ns / cost.libc_ns).median).collect();
        let what = format!("{}: stock's cost over libc's, geometric mean of {} tests", self.name, costs.len());
        verdicts.push(Verdict::of_value(what, geometric_mean(&costs), "", Goal::of(Key("below.cost"))));
        let noop = self.costs("noop", |cost| cost.stock_ns / cost.libc_ns);
        let what = format!("{}: the same of noop", self.name);
        verdicts.push(Verdict::of_spread(what, noop, "", Goal::of(Key("below.cost"))));
        let worst = self.reservations.iter().map(|one| one.distance().abs()).fold(0.0, f64::max);
        let what = format!("{}: share minus Q/T, largest of {}", self.name, self.reservations.len());
        verdicts.push(Verdict::of_value(what, worst, "points", Goal::of(Key("below.share"))));
        let what = format!("{}: Jain index of three unlike clients", self.name);
        verdicts.push(Verdict::of_spread(what, Spread::of(self.jain.iter().copied()), "", Goal::of(Key("below.jain"))));
        verdicts
    }
}

impl OfReservation {
    fn asked(&self) -> f64 {
        f64::from(self.budget_ms) / f64::from(self.period_ms)
    }

    fn distance(&self) -> f64 {
        (median(self.measured.iter().map(|given| given.share())) - self.asked()) * 100.0
    }
}

fn mean_ms(trial: &Trial) -> f64 {
    trial.series.response_ms().mean
}

fn notes() -> Vec<String> {
    vec![
        "How it was measured. The same server as it comes, with xqos from below (libc) and, an Xvfb, with xqos by its own \
         functions (dix), all up all the time; in each pair they follow each other with new clients. Xwayland is \
         started by each compositor that is here, which shows nothing. The light client draws 200 lines every 10 ms and \
         waits for the answer. Figures are medians of the pairs; ratios are taken within a pair."
            .to_owned(),
        "Costs are processor time of the whole server process for an operation, by x11perf's count: what a server does for \
         its clients with a second of a processor. A processor that the machine's host takes away does not count in it."
            .to_owned(),
        "Shares are reserved server time over elapsed time, both as the server counts them, over whole periods."
            .to_owned(),
    ]
}
