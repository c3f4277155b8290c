// SPDX-License-Identifier: MIT
//! Decides which X connections belong to *the program* that `xqos run` started, and which to its children.
//!
//! | a process that connects | verdict |
//! |---|---|
//! | is our child, or descends from it through processes without X connections (sh, env, nice, launchers) | program |
//! | has an ancestor below us that has or had an X connection | inherited: started by the program |
//! | is an orphan that we adopted before the program's first connection | program (its launcher has exited) |
//! | is an orphan that we first saw later | stray: its parent is unknown |
//! | does not descend from us | foreign |
//! | had already exited when we looked, as xset does | vanished: unknown, and nothing is left to reserve for |
//!
//! Users of such tools complain about settings that children inherit by mistake. When in doubt, nothing is reserved,
//! and a message says so. When a process exits, the kernel forgets that it was the parent of its children. The process
//! tree is therefore recorded whenever one of our processes connects. A parent stays recorded after its exit.

use std::collections::{HashMap, HashSet};
use xqos_sys::{Process, Processes};

/// A pid and the start time of its process. The pair is unique until the machine reboots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Identity {
    pid: i32,
    started: u64,
}

impl Identity {
    fn of(pid: i32, process: &Process) -> Identity {
        Identity { pid, started: process.started }
    }
}

/// The relation of a connection to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    Program,
    /// Contains the pid of the nearest ancestor with an X connection.
    Inherited(i32),
    Stray,
    Foreign,
    Vanished,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// Started by the process with this identity.
    Child(Identity),
    /// The main child, or a process adopted before any of our processes had connected.
    First,
    /// Adopted later.
    Stray,
}

#[derive(Debug)]
pub struct Family {
    root: i32,
    main: i32,
    origins: HashMap<Identity, Origin>,
    /// Processes that have or had an X connection.
    connected: HashSet<Identity>,
}

impl Family {
    /// `root` is our own pid, which must be a child subreaper; `main` is the program's pid.
    pub fn new(root: i32, main: i32) -> Family {
        Family { root, main, origins: HashMap::new(), connected: HashSet::new() }
    }

    /// Records that a process has connected to the X server, and returns its relation to the program.
    pub fn connected(&mut self, pid: i32, processes: &impl Processes) -> Relation {
        let all = processes.all();
        self.note(&all);
        let Some(process) = all.get(&pid) else { return Relation::Vanished };
        let identity = Identity::of(pid, process);
        let verdict = self.judge(identity);
        if verdict != Relation::Foreign {
            self.connected.insert(identity);
        }
        verdict
    }

    /// Returns true if any of our processes has or had an X connection.
    pub fn any_connected(&self) -> bool {
        !self.connected.is_empty()
    }

    /// Returns true if a running process without a connection would count as the program if it connected.
    pub fn more_may_connect(&mut self, processes: &impl Processes) -> bool {
        let all = processes.all();
        self.note(&all);
        all.iter().filter(|(_, process)| !process.zombie).any(|(&pid, process)| {
            let identity = Identity::of(pid, process);
            !self.connected.contains(&identity) && self.judge(identity) == Relation::Program
        })
    }

    fn judge(&self, identity: Identity) -> Relation {
        let Some(mut origin) = self.origins.get(&identity) else { return Relation::Foreign };
        // Parents are older than their children, so this loop ends.
        loop {
            match origin {
                Origin::First => return Relation::Program,
                Origin::Stray => return Relation::Stray,
                Origin::Child(parent) if self.connected.contains(parent) => return Relation::Inherited(parent.pid),
                Origin::Child(parent) => match self.origins.get(parent) {
                    Some(parents) => origin = parents,
                    None => return Relation::Stray,
                },
            }
        }
    }

    /// Records the origin of every new process below us, and forgets processes that are no longer needed.
    fn note(&mut self, all: &HashMap<i32, Process>) {
        let mut living = HashSet::new();
        for (&pid, process) in all {
            if !self.is_below(process, all) {
                continue;
            }
            let origin = match all.get(&process.parent) {
                Some(parent) if process.parent != self.root => Origin::Child(Identity::of(process.parent, parent)),
                _ if pid == self.main || self.connected.is_empty() => Origin::First,
                _ => Origin::Stray,
            };
            let identity = Identity::of(pid, process);
            self.origins.entry(identity).or_insert(origin);
            living.insert(identity);
        }
        self.forget(living);
    }

    /// Returns true if the process descends from us. A tree that is read while it changes may contain a loop of reused
    /// pids, so the number of steps is limited.
    fn is_below(&self, process: &Process, all: &HashMap<i32, Process>) -> bool {
        let line = std::iter::successors(Some(process), |process| all.get(&process.parent));
        line.take(all.len()).any(|process| process.parent == self.root)
    }

    fn forget(&mut self, living: HashSet<Identity>) {
        let mut needed = living;
        for mut identity in needed.clone() {
            while let Some(Origin::Child(parent)) = self.origins.get(&identity) {
                if !needed.insert(*parent) {
                    break;
                }
                identity = *parent;
            }
        }
        self.origins.retain(|identity, _| needed.contains(identity));
        // At least one entry is kept, to remember that there was a connection.
        if self.connected.iter().any(|identity| needed.contains(identity)) {
            self.connected.retain(|identity| needed.contains(identity));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    const XQOS: i32 = 100;
    const MAIN: i32 = 200;

    /// A process tree with a subreaper at [`XQOS`]. Each process starts one tick after the previous one.
    struct Model {
        processes: RefCell<HashMap<i32, Process>>,
        tick: RefCell<u64>,
    }

    impl Model {
        fn new() -> Model {
            let model = Model { processes: RefCell::default(), tick: RefCell::new(0) };
            model.start(1, 0);
            model.start(50, 1);
            model.start(XQOS, 50);
            model.start(MAIN, XQOS);
            model
        }

        fn start(&self, pid: i32, parent: i32) {
            *self.tick.borrow_mut() += 1;
            let process = Process { parent, started: *self.tick.borrow(), zombie: false, ticks: 0 };
            self.processes.borrow_mut().insert(pid, process);
        }

        fn end(&self, pid: i32) {
            let mut processes = self.processes.borrow_mut();
            processes.remove(&pid);
            for process in processes.values_mut().filter(|process| process.parent == pid) {
                process.parent = XQOS;
            }
        }
    }

    impl Processes for Model {
        fn look(&self, pid: i32) -> Option<Process> {
            self.processes.borrow().get(&pid).copied()
        }

        fn all(&self) -> HashMap<i32, Process> {
            self.processes.borrow().clone()
        }
    }

    fn family() -> (Family, Model) {
        (Family::new(XQOS, MAIN), Model::new())
    }

    #[test]
    fn all_connections_of_the_main_child_are_the_programs() {
        let (mut family, tree) = family();
        assert!(!family.any_connected());
        assert_eq!(family.connected(MAIN, &tree), Relation::Program);
        assert_eq!(family.connected(MAIN, &tree), Relation::Program, "a second connection of its own");
        assert!(family.any_connected());
    }

    #[test]
    fn wrappers_without_a_connection_count_as_the_program() {
        let (mut family, tree) = family();
        tree.start(201, MAIN);
        tree.start(202, 201);
        assert_eq!(family.connected(202, &tree), Relation::Program);
    }

    #[test]
    fn children_of_the_program_do_not_inherit() {
        let (mut family, tree) = family();
        tree.start(201, MAIN);
        assert_eq!(family.connected(201, &tree), Relation::Program);
        tree.start(202, 201);
        tree.start(203, 202);
        assert_eq!(family.connected(203, &tree), Relation::Inherited(201), "through a shell, too");
        tree.start(204, 203);
        assert_eq!(family.connected(204, &tree), Relation::Inherited(203), "nor do grandchildren");
        tree.start(205, MAIN);
        assert_eq!(family.connected(205, &tree), Relation::Program, "a second program of the same wrapper does");
    }

    #[test]
    fn a_closed_connection_still_counts() {
        let (mut family, tree) = family();
        assert_eq!(family.connected(MAIN, &tree), Relation::Program);
        for pid in 300..400 {
            tree.start(pid, MAIN);
            assert!(matches!(family.connected(pid, &tree), Relation::Inherited(MAIN)));
            tree.end(pid);
        }
        assert!(family.connected.len() < 5 && family.origins.len() < 5, "unneeded entries remain: {family:?}");
    }

    #[test]
    fn processes_of_others_are_foreign() {
        let (mut family, tree) = family();
        tree.start(300, 50);
        assert_eq!(family.connected(300, &tree), Relation::Foreign);
        assert_eq!(family.connected(XQOS, &tree), Relation::Foreign, "our own connection is not the program's");
        assert_eq!(family.connected(9999, &tree), Relation::Vanished);
        assert!(!family.any_connected());
    }

    #[test]
    fn a_child_of_a_launcher_that_exits_is_the_program() {
        let (mut family, tree) = family();
        tree.start(201, MAIN);
        tree.end(MAIN);
        assert!(family.more_may_connect(&tree));
        assert_eq!(family.connected(201, &tree), Relation::Program);
        assert!(!family.more_may_connect(&tree));
    }

    #[test]
    fn an_orphan_of_the_program_does_not_inherit() {
        let (mut family, tree) = family();
        assert_eq!(family.connected(MAIN, &tree), Relation::Program);
        // A panel starts a program by forking twice, and the process in between was never recorded.
        tree.start(201, MAIN);
        tree.start(202, 201);
        tree.end(201);
        assert_eq!(tree.look(202).unwrap().parent, XQOS);
        assert!(!family.more_may_connect(&tree), "we do not wait for it either");
        assert_eq!(family.connected(202, &tree), Relation::Stray);
    }

    #[test]
    fn a_recorded_parent_stays_valid_after_its_exit() {
        let (mut family, tree) = family();
        tree.start(201, MAIN);
        tree.start(202, MAIN);
        tree.start(203, 202);
        assert_eq!(family.connected(201, &tree), Relation::Program);
        tree.end(202);
        assert_eq!(family.connected(203, &tree), Relation::Program, "started by a wrapper that has exited");
        tree.start(204, 201);
        assert_eq!(family.connected(204, &tree), Relation::Inherited(201));
        tree.start(205, 204);
        assert!(family.more_may_connect(&tree), "the wrapper may; this call also records the tree");
        tree.end(201);
        tree.end(204);
        assert_eq!(family.connected(205, &tree), Relation::Inherited(204));
    }

    #[test]
    fn a_reused_pid_is_another_process() {
        let (mut family, tree) = family();
        tree.start(201, MAIN);
        assert_eq!(family.connected(201, &tree), Relation::Program);
        tree.end(201);
        tree.start(201, MAIN);
        tree.start(202, 201);
        assert_eq!(family.connected(202, &tree), Relation::Program, "this 201 never connected");
    }

    #[test]
    fn a_loop_in_the_process_tree_does_not_hang() {
        let (mut family, tree) = family();
        tree.start(201, 202);
        tree.start(202, 201);
        assert_eq!(family.connected(201, &tree), Relation::Foreign);
    }
}
