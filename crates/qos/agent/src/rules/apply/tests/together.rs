// SPDX-License-Identifier: MIT
//! Many clients in one call get the same settings as in separate calls, with a single wait.

use super::*;

type Many = Applier<Model, Searches, Boosted>;

/// An applier for this number of clients; their resource bases are 1, 2 and so on.
fn desk(clients: u32) -> Many {
    let model = Model::default();
    model.entries.borrow_mut().extend((1..=clients).map(|base| (base, client(base))));
    Applier::new(model, Searches::default(), Boosted::default())
}

/// One rule for all clients.
fn rules(set: &str) -> RuleSet {
    let rule = format!("version = 1\n[[rule]]\nid = \"r\"\nmatch = {{ exe = \"*\" }}\nset = {{ {set} }}\n");
    RuleSet::new(read::file("t.toml", &rule, Scope::System).unwrap().rules)
}

/// Applies a rule with these settings to all clients.
fn apply(desk: &mut Many, set: &str) -> Vec<String> {
    apply_rules(desk, &rules(set), true)
}

fn apply_rules(desk: &mut Many, rules: &RuleSet, at_once: bool) -> Vec<String> {
    let facts = ClientFacts { exe: Some("/usr/bin/mpv".into()), ..ClientFacts::default() };
    let entries: Vec<ClientEntry> = desk.server.entries.borrow().values().cloned().collect();
    let all: Vec<_> = entries.iter().map(|entry| (entry, rules.evaluate(&facts).applied())).collect();
    match at_once {
        true => desk.apply(&all),
        false => all.chunks(1).flat_map(|one| desk.apply(one)).collect(),
    }
}

fn weights(desk: &Many) -> Vec<u32> {
    desk.server.entries.borrow().values().map(|entry| entry.weight).collect()
}

fn counted(desk: &Many) -> (usize, usize) {
    (*desk.server.requests.borrow(), *desk.server.waits.borrow())
}

#[test]
fn five_hundred_clients_need_one_wait() {
    let mut desk = desk(500);
    assert_eq!(apply(&mut desk, "weight = 2, priority = 5").len(), 1000);
    assert_eq!((counted(&desk), weights(&desk)), ((1000, 1), vec![200; 500]));
    apply(&mut desk, "weight = 2, priority = 5");
    assert_eq!(counted(&desk), (1000, 1), "no setting is requested twice");
    apply(&mut desk, "weight = 3, priority = 5");
    assert_eq!((counted(&desk), weights(&desk)), ((1500, 2), vec![300; 500]));
}

#[test]
fn one_refusal_among_many_is_reported_once_and_retried() {
    let mut desk = desk(3);
    desk.server.refused = Some(2);
    let told = apply(&mut desk, "weight = 2");
    assert_eq!((told.len(), told[1].as_str()), (3, "refused, by rule 'r' (t.toml:2)"));
    assert_eq!(weights(&desk), [200, 100, 200]);
    assert_eq!(apply(&mut desk, "weight = 2"), [""; 0], "nothing has changed");
    desk.server.refused = None;
    assert_eq!(apply(&mut desk, "weight = 2").len(), 1);
    assert_eq!(weights(&desk), [200; 3]);
}

#[test]
fn a_server_that_hangs_is_asked_once_and_gets_all_settings_later() {
    let mut desk = desk(100);
    desk.server.is_late = true;
    assert_eq!(apply(&mut desk, "weight = 2, priority = 5"), [""; 0]);
    assert_eq!((counted(&desk), weights(&desk)), ((201, 2), vec![100; 100]), "only one is requested again");
    assert!(desk.late.take().is_some_and(|error| error.is_late()) && desk.refusal.take().is_none());
    desk.server.is_late = false;
    assert_eq!(apply(&mut desk, "weight = 2, priority = 5").len(), 200);
    assert_eq!(weights(&desk), vec![200; 100]);
    assert!(desk.late.take().is_none());
}

#[test]
fn measuring_begins_when_the_server_answers_again() {
    let mut desk = desk(2);
    desk.auto.is_late = true;
    assert_eq!(apply(&mut desk, "reserve = \"auto\""), [""; 0]);
    assert!(desk.late.take().is_some() && desk.auto.clients.is_empty());
    desk.auto.is_late = false;
    apply(&mut desk, "reserve = \"auto\"");
    assert_eq!(desk.auto.clients, [1, 2].into());
}

#[test]
fn many_clients_get_the_same_settings_together_as_one_by_one() {
    const SETS: [&str; 5] = [
        "weight = 2, reserve = \"auto\"",
        "weight = 3, group = \"back\", max = \"20%\"",
        "reserve = \"3ms/10ms\", hard = true, cpu = true",
        "pace = true, max = \"5%\"",
        "ignore = true",
    ];
    let all = SETS.map(rules);
    for seed in xqos_testkit::seeds(300) {
        let (mut at_once, mut one_by_one, mut dice) = (desk(4), desk(4), Dice::new(seed));
        for _ in 0..20 {
            let (at, who) = (dice.below(SETS.len() as u64) as usize, dice.below(8) as u32);
            let told = [(&mut at_once, true), (&mut one_by_one, false)].map(|(desk, is_at_once)| {
                desk.server.refused = Some(who);
                if let Some(entry) = desk.server.entries.borrow_mut().get_mut(&(who % 4 + 1)).filter(|_| who > 5) {
                    entry.weight = 700;
                }
                apply_rules(desk, &all[at], is_at_once)
            });
            assert_eq!(told[0], told[1], "seed {seed}: {}", SETS[at]);
            assert_eq!(
                *at_once.server.entries.borrow(),
                *one_by_one.server.entries.borrow(),
                "seed {seed}: {}",
                SETS[at]
            );
        }
    }
}
