//! Loops as gcc 12 compiles them from C at -O2, with synthetic samples and addresses: each cause is found where it is planted, and nowhere else.

mod aarch64;

use std::collections::HashMap;

use plumb_profile::{Address, Id, InstructionSet, ThreadId};

use super::*;
use crate::access::{Access, Accesses};
use crate::annotate::{AnnotatedRow, Listing};
use crate::cost::Cost;
use crate::isa::operands;

/// `for (i…) if (accounts[i].number == number) return &accounts[i];`
const SEARCH: &str =
    "488d05a9ad000031d24889c1eb11669083c2014883c12081faa00f0000740f393975ed4863d248c1e2054801d0c331c0c3";
/// `for (i…) if (values[i] >= 128) sum += values[i];`
const SUM_LARGE: &str =
    "85f67e244863f631c0488d0c370f1f000fb61784d279034801d04883c7014839cf75edc30f1f400031c0c3";
/// `while (atomic_load(&ready) != 1) pause();`, and some work around it.
const SPIN: &str = "bac201000031c9eb090f1f8000000000f3908b05202e000083f80175f348030d0c2e0000c7050a2e00000000000083ea0175df4889c8c3";
/// `for (i…) { sum += n->v; n = n->next; }`
const WALK: &str =
    "4885f67e2331c031d20f1f80000000004883c00148035708488b3f4839c675f04889d0c30f1f400031d24889d0c3";
/// `for (i…) sum += a[i];`
const SUM: &str = "4885f67e1b488d14f731c00f1f4400004803074883c7084839d775f4c30f1f0031c0c3";
/// `for (i…) cells[i] = cells[i] * factor + cells[i] * 0.25f;`
const DECAY: &str = "85f67e354863f6f30f101d290e0000488d04b70f1f440000f30f100f4883c7040f28d1f30f59d0f30f59cbf30f58d1f30f1157fc4839f875dfc3";

/// Four bytes are stored one by one and loaded as a word; WORDS: two words are stored and loaded together.
const PARTS: &str = "4885ff745b31c9be0100000049b8157c4a7fb979379e662e0f1f8400000000004889f040887424f848c1e808884c24f9884424fa4889c84883c10148c1e808884424fb8b4424f84831f0490fafc048c1e8034889c64839cf75c64889f0c36690be010000004889f0c3";
const WORDS: &str = "4885ff744b31c9be0100000049b8157c4a7fb979379e662e0f1f840000000000897424f8894c24fc8b4424f84883c1014831f0490fafc048c1e8034889c64839cf75dd4889f0c3660f1f840000000000be010000004889f0c3";
/// `for (;; code++) switch (*code) {…}` with seven cases, on a stack of ints.
const BYTECODE: &str = "4889f94189d089f731c0488d35a70c00000f1f800000000080390677230fb611486314964801f2ffe20f1f80000000008d50ff4863d2d17c94e8660f1f4400004883c101ebd2662e0f1f840000000000448d48ff83e80248984d63d18b5484e8422b5494e8895484e84489c8ebd26690448d48ff83e80248984d63d18b5484e8420faf5494e8895484e84489c8ebb1908d50ff83e80248984c63ca468b4c8ce844014c84e889d0eb970f1f80000000004863d083c00144894494e8eb830f1f0083e80148988b4484e8c3660f1f4400004863d083c001897c94e8e961ffffff";

/// Annotates a function with samples at these offsets.
fn annotated(code: &str, sampled: &[(u64, u64)]) -> Annotation {
    let bytes: Vec<u8> =
        (0..code.len() / 2).map(|at| u8::from_str_radix(&code[2 * at..2 * at + 2], 16).unwrap()).collect();
    annotation(Listing::decode(Address(0x1000), &bytes, InstructionSet::X86_64), sampled)
}

fn annotation(listing: Listing, sampled: &[(u64, u64)]) -> Annotation {
    let mut rows = vec![AnnotatedRow::default(); listing.instructions().len()];
    for &(offset, weight) in sampled {
        let row = &mut rows[listing.index_of(Address(0x1000 + offset)).unwrap()];
        (row.own, row.adjusted) = (Cost { weight, samples: weight }, weight as f64);
    }
    let own: Cost = rows.iter().map(|row| row.own).sum();
    Annotation { listing, rows, own, outside: Cost::default(), whole: own, is_adjusted: true }
}

/// Accesses of the instruction at an offset.
fn accesses(of: &Annotation, offset: u64, addresses: impl Iterator<Item = u64>) -> Accesses {
    let site = of.listing.index_of(Address(0x1000 + offset)).unwrap();
    let access = |(time_ns, address): (usize, u64)| Access {
        time_ns: time_ns as u64,
        thread: ThreadId::from_index(0),
        address: 0x7000_0000_0000 + address,
    };
    let all: Vec<Access> = addresses.enumerate().map(access).collect();
    Accesses { samples: all.len(), sites: HashMap::from([(site, all)]) }
}

fn scattered(bytes: u64) -> impl Iterator<Item = u64> {
    let mut state = 1_u64;
    (0..1000).map(move |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 20) % bytes) & !15
    })
}

fn found(of: &Annotation, accesses: &Accesses) -> Option<LoopCause> {
    let operands = operands(of.listing.decoded());
    cause(of, &operands, accesses, CacheSizes { l2: 1 << 20, l3: 32 << 20 }).map(|finding| finding.cause)
}

#[test]
fn following_pointers_misses_the_caches_only_where_these_are_too_small() {
    let walk = annotated(WALK, &[(0x14, 10), (0x18, 500)]);
    let far = found(&walk, &accesses(&walk, 0x18, scattered(64 << 20)));
    let Some(LoopCause::CacheMiss { pattern, working_set, is_beyond_l3, .. }) = far else {
        panic!("{far:?}")
    };
    assert_eq!((pattern, is_beyond_l3), (AccessPattern::PointerChase, true));
    assert!((32 << 20..128 << 20).contains(&working_set), "{working_set}");
    let near = found(&walk, &accesses(&walk, 0x18, scattered(64 << 10)));
    assert!(matches!(near, Some(LoopCause::CachedChase { .. })), "{near:?}");
    assert_eq!(found(&walk, &Accesses::default()), None, "nothing is known of where the data is");
}

#[test]
fn reading_in_order_is_no_cause() {
    let sum = annotated(SUM, &[(0x10, 500)]);
    assert_eq!(found(&sum, &accesses(&sum, 0x10, (0..1000).map(|at| at * 80_000))), None);
}

/// `for (row…) sum += cells[row * 6000];`, and SUM's code with a stride of 8 bytes.
const COLUMN: &str =
    "4885f67e2b4869f680bb000031c0488d1437660f1f4400004803074881c780bb00004839d775f1c30f1f84000000000031c0c3";

#[test]
fn going_by_pages_misses_and_going_by_lines_does_not() {
    let column = annotated(COLUMN, &[(0x18, 500), (0x22, 20)]);
    let far = found(&column, &accesses(&column, 0x18, (0..1000).map(|at| at * 48_000)));
    assert!(matches!(far, Some(LoopCause::CacheMiss { pattern: AccessPattern::LongStride, .. })), "{far:?}");
}

#[test]
fn a_spinning_loop_waits_and_a_search_searches() {
    let spin = annotated(SPIN, &[(0x10, 200), (0x12, 300)]);
    assert_eq!(found(&spin, &Accesses::default()), Some(LoopCause::BusyWait { takes_lock: false }));
    let search = annotated(SEARCH, &[(0x1f, 500), (0x10, 9)]);
    assert_eq!(found(&search, &Accesses::default()), Some(LoopCause::LinearSearch));
}

#[test]
fn adding_up_what_a_condition_picks_is_no_search() {
    let sum = annotated(SUM_LARGE, &[(0x10, 250), (0x17, 200), (0x1a, 50)]);
    assert_eq!(found(&sum, &Accesses::default()), None);
    // Few samples hit the sum.
    let sum = annotated(SUM_LARGE, &[(0x10, 500), (0x1a, 50)]);
    assert_eq!(found(&sum, &Accesses::default()), None);
}

#[test]
fn a_load_of_parts_waits_and_one_of_a_whole_store_does_not() {
    let parts = annotated(PARTS, &[(0x43, 900), (0x4a, 60), (0x20, 40)]);
    let cause = found(&parts, &Accesses::default());
    assert_eq!(cause, Some(LoopCause::StoreForwarding { stored: 1, loaded: 4 }));
    let words = annotated(WORDS, &[(0x28, 900), (0x33, 100)]);
    assert_eq!(found(&words, &Accesses::default()), None);
}

#[test]
fn an_interpreter_jumps_for_each_step() {
    // As a timer samples it: the look-up of the target, and the first instruction of each case.
    let dispatching = [(0x1d, 140), (0x20, 140), (0x27, 80)];
    let cases = [(0x30, 20), (0x60, 15), (0x78, 30), (0x98, 20), (0xb0, 20), (0xd0, 20)];
    let steps = [(0x40, 60), (0x85, 150), (0xa0, 140)];
    let all = |parts: &[&[(u64, u64)]]| parts.concat();
    let busy = annotated(BYTECODE, &all(&[&dispatching, &cases, &steps]));
    let cause = found(&busy, &Accesses::default());
    assert!(matches!(cause, Some(LoopCause::Dispatch { targets: 4.. })), "{cause:?}");
    // If one case has nearly all of the time, dispatch is not the cause.
    let one = annotated(BYTECODE, &all(&[&[(0x85, 2000)], &dispatching, &cases]));
    assert_eq!(found(&one, &Accesses::default()), None);
}

/// Samples, every 1.001 ms, of a loop that repeatedly walks through `bytes`, at `ns` nanoseconds each.
fn passes(of: &Annotation, offset: u64, ns: f64, bytes: u64) -> Accesses {
    let times = (0..1500_u64).map(|at| at * 1_001_000 + at * at * 7919 % 8_000);
    let site = of.listing.index_of(Address(0x1000 + offset)).unwrap();
    let access = |time_ns: u64| Access {
        time_ns,
        thread: ThreadId::from_index(0),
        address: 0x7000_0000_0000 + (time_ns as f64 / ns) as u64 % bytes,
    };
    let all: Vec<Access> = times.map(access).collect();
    Accesses { samples: all.len(), sites: HashMap::from([(site, all)]) }
}

#[test]
fn a_loop_that_is_far_slower_than_its_code_mispredicts() {
    let sum = annotated(SUM_LARGE, &[(0x13, 240), (0x1a, 330), (0x1d, 340), (0x20, 90)]);
    let slow = found(&sum, &passes(&sum, 0x10, 2.5, 1 << 20));
    assert!(matches!(slow, Some(LoopCause::Mispredictions { .. })), "{slow:?}");
    assert_eq!(found(&sum, &passes(&sum, 0x10, 0.5, 8 << 20)), None, "sorted values: at its own speed");
    assert_eq!(found(&sum, &passes(&sum, 0x10, 2.5, 4000)), None, "passes too short to tell");
    // Nearly four passes for each sample: looks as if one took 28 ms.
    assert_eq!(found(&sum, &passes(&sum, 0x10, 2.5, 100_007)), None);
    // Walking at an equal pace, without a branch on loaded data.
    let plain = annotated(SUM, &[(0x10, 500)]);
    assert_eq!(found(&plain, &passes(&plain, 0x10, 2.5, 1 << 20)), None);
}

#[test]
fn arithmetic_that_is_far_slower_than_its_code_needs_help() {
    let decay = annotated(DECAY, &[(0x18, 100), (0x23, 500), (0x27, 200), (0x2f, 200)]);
    // 23 ns a byte, that is 300 cycles per number: Intel's processors take some 150 per product.
    let slow = found(&decay, &passes(&decay, 0x18, 23.0, 1 << 20));
    assert!(matches!(slow, Some(LoopCause::Assists { .. })), "{slow:?}");
    assert_eq!(found(&decay, &passes(&decay, 0x18, 0.4, 8 << 20)), None, "at its own speed");
    // Integers never need assists.
    let sum = annotated(SUM, &[(0x10, 500)]);
    assert_eq!(found(&sum, &passes(&sum, 0x10, 23.0, 1 << 20)), None);
}
