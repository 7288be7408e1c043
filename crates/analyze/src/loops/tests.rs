//! Loops as gcc 12 makes them of C at -O2, with samples and addresses that are made up: a cause is found where it is planted, and nowhere else.

use std::collections::HashMap;

use plumb_profile::{Address, Id, ThreadId};

use super::*;
use crate::access::{Access, Accesses};
use crate::annotate::{AnnotatedRow, Listing};
use crate::cost::Cost;

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

/// A function with samples at these offsets.
fn annotated(code: &str, sampled: &[(u64, u64)]) -> Annotation {
    let bytes: Vec<u8> =
        (0..code.len() / 2).map(|at| u8::from_str_radix(&code[2 * at..2 * at + 2], 16).unwrap()).collect();
    let listing = Listing::decode(Address(0x1000), &bytes, 64);
    let mut rows = vec![AnnotatedRow::default(); listing.instructions().len()];
    for &(offset, weight) in sampled {
        let row = &mut rows[listing.index_of(Address(0x1000 + offset)).unwrap()];
        (row.own, row.adjusted) = (Cost { weight, samples: weight }, weight as f64);
    }
    let own: Cost = rows.iter().map(|row| row.own).sum();
    Annotation { listing, rows, own, outside: Cost::default(), whole: own, is_adjusted: true }
}

/// Addresses of the instruction at an offset: one after the other, or in no order, over so many bytes.
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
    cause(of, accesses, CacheSizes { l2: 1 << 20, l3: 32 << 20 }).map(|finding| finding.cause)
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
    // Where hardly a sample hit the sum.
    let sum = annotated(SUM_LARGE, &[(0x10, 500), (0x1a, 50)]);
    assert_eq!(found(&sum, &Accesses::default()), None);
}
