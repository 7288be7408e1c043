//! Loops as gcc 12 compiles them from C for aarch64, at -O2.

use super::*;

/// `while (!atomic_load_explicit(&flag, memory_order_acquire));`
const SPIN: &str = "90000001 91000021 88dffc20 34ffffe0 b9400420 d65f03c0";
/// `for (i…) { sum += n->v; n = n->next; }`
const WALK: &str = "aa0003e2 b4000121 d2800003 d2800000 a9401042 91000463 8b040000 eb03003f 54ffff81 d65f03c0 d2800000 d65f03c0";
/// `for (i…) sum += a[i];`
const SUM: &str =
    "b4000121 aa0003e2 d2800000 8b010c43 f8408441 8b010000 eb03005f 54ffffa1 d65f03c0 d2800000 d65f03c0";
/// `for (i…) if (a[i] == number) return i;`
const SEARCH: &str = "b4000161 d2800003 14000004 91000463 eb03003f 540000c0 f8637804 eb02009f 54ffff61 aa0303e0 d65f03c0 92800000 d65f03c0";
/// `for (i…) if (a[i] > 127) sum += a[i] * sum ^ 3;`
const SUM_LARGE: &str = "b4000201 aa0003e2 d2800000 8b010843 d503201f b9400041 91001042 7101fc3f 540000ad 93407c21 9b007c21 d2400421 8b010000 eb03005f 54fffee1 d65f03c0 d2800000 d65f03c0";
/// `while (!atomic_compare_exchange_weak(lock, &zero, 1)) zero = 0;`, with exclusive instructions and with `casa`.
const LOCK: &str = "52800021 885ffc02 7100005f 54000061 88037c01 7100007f 54ffff61 d65f03c0";
const LOCK_LSE: &str = "52800022 52800001 88e17c02 35ffffc1 d65f03c0";
/// `for (i…) atomic_fetch_add(counter, 1);`, with exclusive instructions and with `ldadd`.
const COUNT: &str =
    "b4000121 d2800002 c85f7c03 91000463 c8047c03 35ffffa4 91000442 eb02003f 54ffff41 d65f03c0";
const COUNT_LSE: &str = "b40000e1 d2800002 d2800023 f8230004 91000442 eb02003f 54ffffa1 d65f03c0";
/// Four bytes are stored one by one and loaded as a word; HALVES: two words are stored and loaded together.
const PARTS: &str = "b4000340 528f3625 d10043ff aa0003e4 52800001 d2800003 d2800020 72b3c6e5 12001c22 390023e2 d3483c22 390027e2 d3505c22 39002be2 53187c22 39002fe2 91000463 0b050021 b9400be2 2a0203e2 ca000040 8b000c00 eb03009f 54fffe21 910043ff d65f03c0 d2800020 d65f03c0";
const HALVES: &str = "b4000260 528f3625 d10043ff aa0003e4 52800002 d2800001 d2800020 72b3c6e5 b9000be2 91000421 b9000fe0 0b050042 f94007e3 ca000060 8b000c00 eb01009f 54ffff01 910043ff d65f03c0 d2800020 d65f03c0";

fn annotated(code: &str, sampled: &[(u64, u64)]) -> Annotation {
    let bytes: Vec<u8> =
        code.split(' ').flat_map(|word| u32::from_str_radix(word, 16).unwrap().to_le_bytes()).collect();
    annotation(Listing::decode(Address(0x1000), &bytes, InstructionSet::Aarch64), sampled)
}

#[test]
fn following_pointers_misses_the_caches() {
    let walk = annotated(WALK, &[(0x10, 10), (0x14, 500)]);
    let far = found(&walk, &accesses(&walk, 0x10, scattered(64 << 20)));
    assert!(
        matches!(far, Some(LoopCause::CacheMiss { pattern: AccessPattern::PointerChase, .. })),
        "{far:?}"
    );
    let near = found(&walk, &accesses(&walk, 0x10, scattered(64 << 10)));
    assert!(matches!(near, Some(LoopCause::CachedChase { .. })), "{near:?}");
}

#[test]
fn an_address_that_a_load_advances_is_strided_and_does_not_wait() {
    let sum = annotated(SUM, &[(0x10, 500)]);
    assert_eq!(found(&sum, &accesses(&sum, 0x10, (0..1000).map(|at| at * 80_000))), None);
    let hot = HotLoop::of(&sum).expect("there is a loop");
    let operands = operands(sum.listing.decoded());
    let of_path: Vec<&Operands> = hot.path.iter().map(|&index| &operands[index]).collect();
    assert_eq!(origin(sum.listing.decoded(), &hot.path, &of_path, 0, true), AddressOrigin::Strided);
    assert!(bounds(&sum.listing, &hot.path, &of_path).chain < 2.0);
}

#[test]
fn a_spinning_loop_waits_and_a_search_searches() {
    let spin = annotated(SPIN, &[(0x8, 200), (0xc, 300)]);
    assert_eq!(found(&spin, &Accesses::default()), Some(LoopCause::BusyWait { takes_lock: false }));
    let search = annotated(SEARCH, &[(0x18, 100), (0x1c, 500)]);
    assert_eq!(found(&search, &Accesses::default()), Some(LoopCause::LinearSearch));
    let sum = annotated(SUM_LARGE, &[(0x14, 250), (0x1c, 200), (0x24, 50)]);
    assert_eq!(found(&sum, &Accesses::default()), None);
}

#[test]
fn a_lock_is_waited_for_and_a_counter_is_work() {
    for (lock, sampled) in [(LOCK, [(0x4, 300), (0x8, 500)]), (LOCK_LSE, [(0x8, 300), (0xc, 500)])] {
        let lock = annotated(lock, &sampled);
        assert_eq!(found(&lock, &Accesses::default()), Some(LoopCause::BusyWait { takes_lock: true }));
    }
    for (count, sampled) in [(COUNT, [(0x10, 300), (0x14, 500)]), (COUNT_LSE, [(0xc, 300), (0x10, 500)])] {
        let count = annotated(count, &sampled);
        assert_eq!(found(&count, &Accesses::default()), None);
    }
}

#[test]
fn bytes_are_not_joined_and_halves_are() {
    let parts = annotated(PARTS, &[(0x48, 900), (0x4c, 60), (0x24, 40)]);
    let cause = found(&parts, &Accesses::default());
    assert_eq!(cause, Some(LoopCause::StoreForwarding { stored: 1, loaded: 4 }));
    let halves = annotated(HALVES, &[(0x30, 900), (0x34, 100)]);
    assert_eq!(found(&halves, &Accesses::default()), None);
}
