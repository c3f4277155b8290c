// SPDX-License-Identifier: MIT
//! A program that sends random requests in random pieces receives the same messages with and without the proxy.

use crate::harness::{BASE, COLORMAP, Harness, Heard, ROOT, STRUCTURE_NOTIFY, Server, messages, named, request};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use xqos_near::{NearSettings, Questions, Store};
use xqos_x11::ByteOrder;

const NAMES: [&str; 4] = ["A", "SOME_NAME", "RENDER", "MIT-SHM"];
const PROPERTY_CHANGE: u32 = 1 << 22;

/// A request of the program.
#[derive(Clone, Copy, Debug)]
enum Op {
    Atom {
        name: usize,
        makes: bool,
    },
    AtomName(u32),
    Extension(usize),
    Color(u32),
    FreeColor(u32),
    Version(u32),
    Formats,
    Window {
        id: u32,
        mask: u32,
    },
    Select {
        id: u32,
        mask: u32,
    },
    Map(u32),
    Write {
        id: u32,
        atom: u32,
    },
    Read {
        id: u32,
        atom: u32,
    },
    Geometry(u32),
    Sync,
    Grab,
    Ungrab,
    Long(usize),
    /// A request with length 0, which is invalid without BIG-REQUESTS.
    Cut(u8),
}

impl Op {
    fn bytes(self, order: ByteOrder) -> Vec<u8> {
        let window = |id: u32| if id == 0 { ROOT } else { BASE + id };
        match self {
            Op::Atom { name, makes } => named(order, 16, u8::from(!makes), NAMES[name]),
            Op::AtomName(atom) => request(order, 17, 0, &[100 + atom]),
            Op::Extension(name) => named(order, 98, 0, NAMES[name]),
            Op::Color(red) => request(order, 84, 0, &[COLORMAP, red, 5]),
            Op::FreeColor(red) => request(order, 88, 0, &[COLORMAP, 0, red]),
            Op::Version(minor) => request(order, 139, 0, &[0, minor]),
            Op::Formats => request(order, 139, 1, &[]),
            Op::Window { id, mask } => {
                request(order, 1, 24, &[BASE + id, ROOT, 0, 0x0010_0010, 0x1_0000, 0, 1 << 11, mask])
            }
            Op::Select { id, mask } => request(order, 2, 0, &[window(id), 1 << 11, mask]),
            Op::Map(id) => request(order, 8, 0, &[window(id)]),
            Op::Write { id, atom } => request(order, 18, 0, &[window(id), atom, 31, 8, 1, 7]),
            Op::Read { id, atom } => request(order, 20, 0, &[window(id), atom, 0, 0, 100]),
            // This drawable does not exist.
            Op::Geometry(id) => request(order, 14, 0, &[window(id + 1000)]),
            Op::Sync => request(order, 43, 0, &[]),
            Op::Grab => request(order, 36, 0, &[]),
            Op::Ungrab => request(order, 37, 0, &[]),
            Op::Long(words) => request(order, 72, 2, &vec![9; words]),
            Op::Cut(major) => vec![major, 0, 0, 0],
        }
    }
}

fn op() -> impl Strategy<Value = Op> {
    let mask = prop_oneof![Just(0), Just(1), Just(PROPERTY_CHANGE), Just(PROPERTY_CHANGE | 1), Just(STRUCTURE_NOTIFY)];
    prop_oneof![
        8 => (0..NAMES.len(), any::<bool>()).prop_map(|(name, makes)| Op::Atom { name, makes }),
        2 => (0..5u32).prop_map(Op::AtomName),
        4 => (0..NAMES.len()).prop_map(Op::Extension),
        4 => (0..3u32).prop_map(Op::Color),
        3 => (0..3u32).prop_map(Op::FreeColor),
        2 => (0..3u32).prop_map(Op::Version),
        3 => Just(Op::Formats),
        3 => (1..4u32, mask.clone()).prop_map(|(id, mask)| Op::Window { id, mask }),
        3 => (0..4u32, mask).prop_map(|(id, mask)| Op::Select { id, mask }),
        2 => (0..4u32).prop_map(Op::Map),
        3 => (0..4u32, 1..3u32).prop_map(|(id, atom)| Op::Write { id, atom }),
        8 => (0..4u32, 1..3u32).prop_map(|(id, atom)| Op::Read { id, atom }),
        1 => (0..3u32).prop_map(Op::Geometry),
        3 => Just(Op::Sync),
        1 => Just(Op::Grab),
        1 => Just(Op::Ungrab),
        1 => (0..3000usize).prop_map(Op::Long),
        1 => prop_oneof![Just(16), Just(36), Just(43), Just(127), Just(139)].prop_map(Op::Cut),
    ]
}

/// The messages that a program receives without the proxy, with hidden extensions reported as absent.
fn direct(order: ByteOrder, ops: &[Op]) -> Vec<Heard> {
    let mut server = Server::new(order);
    ops.iter().for_each(|op| server.take(&op.bytes(order)));
    let mut heard = messages(order, &server.out);
    for message in heard.iter_mut().filter(|message| message.code == 1 && message.rest[5..9] == [1, 130, 65, 128]) {
        message.rest[5..].fill(0);
    }
    heard
}

/// Runs a program through the proxy, and sends the program's bytes in pieces of these sizes.
fn through(proxy: &mut Harness, order: ByteOrder, ops: &[Op], pieces: &[usize]) -> Vec<Heard> {
    let stream: Vec<u8> = ops.iter().flat_map(|op| op.bytes(order)).collect();
    let mut rest = &stream[..];
    for &size in pieces.iter().cycle().take(100_000) {
        let (piece, behind) = rest.split_at(rest.len().min(size + 1));
        rest = behind;
        proxy.say(piece);
        proxy.forward(size * 3 % 97 + 1);
        proxy.deliver(size * 5 % 89 + 1);
        if rest.is_empty() {
            break;
        }
    }
    proxy.say(rest);
    proxy.settle();
    messages(order, &proxy.heard)
}

fn check(
    order: ByteOrder,
    ops: &[Op],
    pieces: &[usize],
    settings: NearSettings,
    store: Store,
) -> Result<Harness, TestCaseError> {
    let mut proxy = Harness::new(order, settings, store);
    proxy.open(&Questions::default());
    let heard = through(&mut proxy, order, ops, pieces);
    let executed = proxy.server.executed.len();
    proxy.near.send_deferred(&proxy.store);
    proxy.settle();
    proxy.server.executed.truncate(executed);
    prop_assert_eq!(proxy.near.fault(), None);
    prop_assert!(!proxy.near.is_verifying() && messages(order, &proxy.heard) == heard);
    prop_assert!(heard.windows(2).all(|two| two[0].number <= two[1].number), "numbers decrease: {:?}", heard);
    let expected = direct(order, ops);
    let is_answer = |message: &&Heard| message.code < 2;
    let (own, other): (Vec<_>, Vec<_>) =
        (heard.iter().filter(is_answer).collect(), expected.iter().filter(is_answer).collect());
    prop_assert_eq!(own, other, "replies and errors");
    // Events keep their content; their sequence numbers may be higher than without the proxy.
    let events =
        |all: &[Heard]| all.iter().filter(|it| it.code > 1).map(|it| (it.code, it.rest.clone())).collect::<Vec<_>>();
    prop_assert_eq!(events(&heard), events(&expected));
    prop_assert_eq!(proxy.near.report().differences, 0, "{:?}", proxy.near.log_lines());
    Ok(proxy)
}

/// Checks that all requests reached the server in order: unchanged, replaced by NoOperation, or with other event masks.
fn check_requests(proxy: &Harness, order: ByteOrder, ops: &[Op]) -> Result<(), TestCaseError> {
    let mut executed = proxy.server.executed.iter().peekable();
    for op in ops {
        let sent = op.bytes(order);
        let is_it = |got: &Vec<u8>| {
            *got == sent || got[..] == request(order, 127, 0, &[]) || sent[0] == 2 && got[..12] == sent[..12]
        };
        // The proxy's own event selections may precede the request.
        while executed.peek().is_some_and(|got| got[0] == 2 && !is_it(got)) {
            executed.next();
        }
        let got = executed.next().cloned().unwrap_or_default();
        prop_assert!(is_it(&got), "{:?} became {:?}", op, got);
    }
    prop_assert_eq!(executed.next(), None);
    Ok(())
}

/// Random requests that use each window ID only once, as client libraries do.
fn ops() -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(op(), 1..60).prop_map(|ops| {
        let mut made = Vec::new();
        let is_new = |op: &Op| match *op {
            Op::Window { id, .. } => {
                !made.contains(&id) && {
                    made.push(id);
                    true
                }
            }
            _ => true,
        };
        ops.into_iter().filter(is_new).collect()
    })
}

fn settings(verify: bool) -> NearSettings {
    NearSettings { verify, ..NearSettings::default() }
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(xqos_testkit::seed()),
        failure_persistence: None,
        ..ProptestConfig::with_cases(150)
    })]

    #[test]
    fn a_program_receives_the_same_as_without_the_proxy(
        ops in ops(),
        pieces in prop::collection::vec(0..200usize, 1..20),
        is_big in any::<bool>(),
        verify in any::<bool>(),
    ) {
        let order = if is_big { ByteOrder::Big } else { ByteOrder::Little };
        let proxy = check(order, &ops, &pieces, settings(verify), Store::default())?;
        check_requests(&proxy, order, &ops)?;
        // Repeat on another connection to the same server, now that the store has learned its answers.
        let ops: Vec<Op> = ops.iter().filter(|op| !matches!(op, Op::Atom { .. } | Op::AtomName(_))).copied().collect();
        let proxy = check(order, &ops, &pieces, settings(verify), proxy.store)?;
        check_requests(&proxy, order, &ops)?;
    }

    #[test]
    fn relaxed_order_keeps_replies_and_increasing_numbers(
        ops in ops(),
        pieces in prop::collection::vec(0..200usize, 1..20),
    ) {
        let order = ByteOrder::Little;
        let settings = NearSettings { relaxed: true, ..NearSettings::default() };
        let mut proxy = Harness::new(order, settings, Store::default());
        proxy.open(&Questions::default());
        let heard = through(&mut proxy, order, &ops, &pieces);
        prop_assert!(heard.windows(2).all(|two| two[0].number <= two[1].number), "numbers decrease: {:?}", heard);
        let replies = |all: &[Heard]| all.iter().filter(|it| it.code == 1).cloned().collect::<Vec<_>>();
        prop_assert_eq!(replies(&heard), replies(&direct(order, &ops)));
    }

    #[test]
    fn memory_is_bounded_for_any_input(
        said in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..300)), 0..40),
        ops in ops(),
    ) {
        let order = ByteOrder::Little;
        let mut proxy = Harness::new(order, NearSettings::default(), Store::default());
        proxy.open(&Questions::default());
        ops.iter().for_each(|op| proxy.say(&op.bytes(order)));
        for (is_server, bytes) in &said {
            if *is_server && proxy.near.takes_from_server() {
                proxy.near.from_server(bytes, 0, &mut proxy.store);
            } else if proxy.near.takes_from_program() {
                proxy.say(bytes);
            }
            prop_assert!(proxy.near.to_program().bytes().len() < 3 << 20);
            prop_assert!(proxy.near.to_server().bytes().len() < 2 << 20);
        }
    }
}
