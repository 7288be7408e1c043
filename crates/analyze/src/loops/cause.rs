//! Why a function's hot loop takes as long as it does, where its code and the data that it works on tell.
//!
//! A cause is only named where what would look alike was ruled out: a load that holds a function's time may miss the caches, wait for the
//! result before it, or be where samples of something else land. Which it is depends on how much memory it works on and on where its
//! address comes from. Where neither tells there is no cause.

use super::branches::{assists, branches, pace, step_of};
use super::dispatch::dispatch;
use super::forwarding::forwarding;
use super::memory::{AccessPattern, CacheSizes};
use super::{AddressOrigin, HotLoop, LoopBounds, Operands, bounds, is_step, origin};
use crate::access::{Access, Accesses, LineSharing, WorkingSet, sharing, working_set};
use crate::annotate::{Annotation, InstructionKind, Listing};

/// Why a loop takes its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoopCause {
    /// It reads one place until that changes, and does nothing else.
    BusyWait {
        /// It tries to take a lock.
        takes_lock: bool,
    },
    /// Threads write to one line of the cache at the same time.
    SharedLine {
        /// To the same word of it.
        same_word: bool,
        /// So many threads.
        threads: usize,
    },
    /// It compares one element after the other until one fits, and does nothing else.
    LinearSearch,
    /// It follows pointers, each of which the load before reads, in memory that the nearer caches hold.
    CachedChase {
        /// Bytes that they are spread over.
        working_set: u64,
        /// Cycles that a round takes at least, each load from the nearest cache.
        cycles: f64,
    },
    /// Its loads are on more pages than the processor remembers the places of, a few lines on each.
    TlbMiss {
        /// Bytes of these pages.
        pages: u64,
    },
    /// It loads what was just stored in parts, or a few bytes off.
    StoreForwarding {
        /// Bytes of the last store that the load shares some with.
        stored: u64,
        /// Bytes of the load.
        loaded: u64,
    },
    /// It jumps by a table for each step.
    Dispatch {
        /// Targets with samples.
        targets: usize,
    },
    /// Its branches are predicted wrongly.
    Mispredictions {
        /// Cycles of a round, as addresses and times of samples tell.
        cycles: f64,
        /// Cycles that it takes at least.
        least: f64,
    },
    /// The processor needs help with its numbers, as with those that are very near zero.
    Assists {
        /// Cycles of a round, as addresses and times of samples tell.
        cycles: f64,
        /// Cycles that it takes at least.
        least: f64,
    },
    /// Its loads don't find their data in the nearer caches.
    CacheMiss {
        /// How their addresses come about.
        pattern: AccessPattern,
        /// Bytes that they are spread over.
        working_set: u64,
        /// It is at least that much.
        is_least: bool,
        /// More than the last level holds.
        is_beyond_l3: bool,
        /// Sampled addresses that this rests on.
        addresses: usize,
    },
}

/// A cause, and what of the function it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoopFinding {
    /// The cause.
    pub cause: LoopCause,
    /// Number of the instruction that shows it.
    pub instruction: usize,
    /// Weight of the loop, of what the function itself cost.
    pub weight: f64,
    /// Share of that which goes if the cause does, as the code's own bounds tell.
    pub avoidable: f64,
}

/// A stride of half a page or more: what is fetched ahead ends with the page (Intel's optimization manual, 2.1.5.4).
const LONG_STRIDE: f64 = 2048.0;

/// Fewer addresses tell nothing.
const LEAST_ADDRESSES: usize = 30;
/// A site counts with this share of all samples with registers.
const LEAST_OF_SAMPLES: f64 = 0.1;
/// A busy wait is no longer than that.
const LONGEST_WAIT: usize = 16;
/// A search has no more instructions for an element, unrolled as it may be.
const LONGEST_SEARCH: usize = 48;

/// Cycles for which a load of the last level of the cache and one of main memory are waited for: of one after the other, and of many at
/// a time. Measured on machines of 2019 to 2025; a factor of two makes no difference to what is asked of them.
const LATENCY: [f64; 2] = [50.0, 300.0];
const THROUGHPUT: [f64; 2] = [7.0, 35.0];

/// The cause, if it is one of those. `operands`: those of the function's instructions.
pub(crate) fn cause(
    annotation: &Annotation,
    operands: &[Operands],
    accesses: &Accesses,
    caches: CacheSizes,
) -> Option<LoopFinding> {
    let hot = HotLoop::of(annotation)?;
    let shape = Shape::of(annotation, operands, &hot);
    busy_wait(annotation, &hot, &shape)
        .or_else(|| shared_line(annotation, &hot, accesses))
        .or_else(|| tlb_miss(&hot, &shape, accesses, caches))
        .or_else(|| cache_miss(&annotation.listing, &hot, &shape, accesses, caches))
        .or_else(|| forwarding(annotation, &shape.operands, &hot, shape.bounds))
        .or_else(|| cached_chase(annotation, &hot, &shape, accesses))
        .or_else(|| linear_search(annotation, operands, &hot, &shape))
        .or_else(|| dispatch(annotation))
        .or_else(|| {
            let near = (accesses, caches.l2 / 4);
            let kind = |at: usize| annotation.listing.instructions()[hot.path[at]].class.kind;
            let is_condition = |load| decides(&shape, load, &kind);
            let of_loop = (&hot, shape.bounds);
            let cycles = pace(annotation, &shape.operands, &shape.origins, of_loop, near)?;
            branches(annotation, &shape.operands, of_loop, cycles, is_condition)
                .or_else(|| assists(annotation, &shape.operands, of_loop, cycles, is_condition))
        })
}

/// What is asked about a loop's instructions again and again.
struct Shape<'o> {
    /// By place on the path.
    operands: Vec<&'o Operands>,
    origins: Vec<Option<AddressOrigin>>,
    bounds: LoopBounds,
}

impl<'o> Shape<'o> {
    fn of(annotation: &Annotation, operands: &'o [Operands], hot: &HotLoop) -> Self {
        let decoded = annotation.listing.decoded();
        let operands: Vec<&Operands> = hot.path.iter().map(|&index| &operands[index]).collect();
        let origin_of =
            |at: usize| operands[at].loads.then(|| origin(decoded, &hot.path, &operands, at, hot.repeats));
        let origins = (0..operands.len()).map(origin_of).collect();
        let bounds = bounds(&annotation.listing, &hot.path, &operands);
        Shape { operands, origins, bounds }
    }

    /// Whether a strided load goes on by more than processors fetch ahead.
    fn is_long_stride(&self, listing: &Listing, hot: &HotLoop, at: usize) -> bool {
        hot.repeats && step_of(listing, &self.operands, hot, at).is_some_and(|step| step.abs() >= LONG_STRIDE)
    }
}

/// All loads read fixed places, one of which decides whether to go on; nothing is written but, where a lock is tried, that place.
fn busy_wait(annotation: &Annotation, hot: &HotLoop, shape: &Shape<'_>) -> Option<LoopFinding> {
    let instructions = annotation.listing.instructions();
    let kind = |at: usize| instructions[hot.path[at]].class.kind;
    let all = 0..hot.path.len();
    if !hot.repeats || hot.path.len() > LONGEST_WAIT || annotation.share(hot.weight) < 60.0 {
        return None;
    }
    let is_allowed = |at: usize| match kind(at) {
        InstructionKind::Plain | InstructionKind::Branch | InstructionKind::Jump => {
            !shape.operands[at].stores
        }
        InstructionKind::Fence | InstructionKind::Lock => true,
        _ => false,
    };
    let reads_fixed = |at: &usize| match shape.origins[*at] {
        Some(origin) => origin == AddressOrigin::Fixed,
        None => true,
    };
    if !all.clone().all(is_allowed) || !all.clone().all(|at| reads_fixed(&at)) {
        return None;
    }
    let load = all.clone().find(|&at| shape.operands[at].loads && decides(shape, at, &kind))?;
    let takes_lock = all.clone().any(|at| kind(at) == InstructionKind::Lock);
    // Counting what is there by an atomic instruction is work.
    if takes_lock && !tries_lock(annotation, hot) {
        return None;
    }
    let cause = LoopCause::BusyWait { takes_lock };
    Some(LoopFinding { cause, instruction: hot.path[load], weight: hot.weight, avoidable: 1.0 })
}

/// Elements are loaded in order and compared, a branch leaves upon the result, and nothing is written or added up.
fn linear_search(
    annotation: &Annotation,
    operands: &[Operands],
    hot: &HotLoop,
    shape: &Shape<'_>,
) -> Option<LoopFinding> {
    let instructions = annotation.listing.instructions();
    let decoded = annotation.listing.decoded();
    let is_search = |index: &usize| {
        let class = instructions[*index].class;
        let operands = &operands[*index];
        let plain =
            matches!(class.kind, InstructionKind::Plain | InstructionKind::Branch | InstructionKind::Jump);
        // A sum, a product, the largest so far: work that takes all elements.
        let adds_up = operands.writes.iter().any(|register| {
            operands.reads.contains(register) && !is_flow(*register) && !is_step(&decoded[*index], *register)
        });
        plain && !operands.stores && class.vector_bits == 0 && !adds_up
    };
    if !hot.repeats
        || hot.body.len() > LONGEST_SEARCH
        || !hot.body.iter().all(is_search)
        || annotation.share(hot.weight) < 60.0
    {
        return None;
    }
    let kind = |at: usize| instructions[hot.path[at]].class.kind;
    let in_order =
        |at: &usize| matches!(shape.origins[*at], Some(AddressOrigin::Strided | AddressOrigin::OwnLoad));
    let mut loads = (0..hot.path.len()).filter(in_order);
    let load = loads.find(|&at| leaves(annotation, hot, shape, at, &kind))?;
    Some(LoopFinding {
        cause: LoopCause::LinearSearch,
        instruction: hot.path[load],
        weight: hot.weight,
        avoidable: 1.0,
    })
}

/// Whether a branch that depends on what a load read leads out of the loop.
fn leaves(
    annotation: &Annotation,
    hot: &HotLoop,
    shape: &Shape<'_>,
    load: usize,
    kind: &impl Fn(usize) -> InstructionKind,
) -> bool {
    if !decides(shape, load, kind) {
        return false;
    }
    let branch = (load + 1..hot.path.len()).find(|&at| kind(at) == InstructionKind::Branch);
    branch.is_some_and(|at| {
        let index = hot.path[at];
        let to = annotation.listing.jump(index);
        [to, Some(index + 1)].into_iter().any(|next| next.is_none_or(|next| !hot.body.contains(&next)))
    })
}

/// The stack pointer and what is no general register.
fn is_flow(register: iced_x86::Register) -> bool {
    !register.is_gpr() || register == iced_x86::Register::RSP
}

/// A load whose address the same load read in the round before, as it is: not an index into a table.
fn cached_chase(
    annotation: &Annotation,
    hot: &HotLoop,
    shape: &Shape<'_>,
    accesses: &Accesses,
) -> Option<LoopFinding> {
    let bounds = shape.bounds;
    if !hot.repeats || bounds.chain < 1.5 * bounds.issue || !bounds.has_loads || bounds.has_division {
        return None;
    }
    let is_direct = |at: usize| {
        let instruction = &annotation.listing.decoded()[hot.path[at]];
        let base = instruction.memory_base().full_register();
        let has_index = instruction.memory_index() != iced_x86::Register::None;
        shape.operands[at].writes.contains(&base) && !has_index
    };
    let at =
        (0..hot.path.len()).find(|&at| shape.origins[at] == Some(AddressOrigin::OwnLoad) && is_direct(at))?;
    let all = accesses.sites.get(&hot.path[at])?;
    let set = working_set(all).filter(|_| all.len() >= LEAST_ADDRESSES)?;
    // One element alone is no list.
    let is_list = set.bytes >= 8 * crate::access::LINE;
    is_list.then_some(LoopFinding {
        cause: LoopCause::CachedChase { working_set: set.bytes, cycles: bounds.chain },
        instruction: hot.path[at],
        weight: hot.weight,
        avoidable: 1.0 - bounds.issue / bounds.chain,
    })
}

/// Whether a branch depends on what a load read: compares it, or what became of it.
fn decides(shape: &Shape<'_>, load: usize, kind: &impl Fn(usize) -> InstructionKind) -> bool {
    let mut holds = shape.operands[load].writes.clone();
    let mut is_compared = holds.is_empty();
    for at in load + 1..shape.operands.len() {
        if kind(at) == InstructionKind::Branch {
            return is_compared;
        }
        let operands = shape.operands[at];
        let uses = operands.reads.iter().any(|register| holds.contains(register));
        if operands.writes.is_empty() {
            // A comparison is what the branch goes by, whatever was before.
            is_compared = if operands.stores { is_compared } else { uses };
        } else if uses {
            // Arithmetic sets the flags as well, but for that of vectors.
            is_compared |= operands.writes.iter().any(|register| register.is_gpr());
            holds.extend(&operands.writes);
        }
    }
    false
}

/// Whether a loop exchanges or compares and exchanges, and goes round again for the sake of the result.
fn tries_lock(annotation: &Annotation, hot: &HotLoop) -> bool {
    use iced_x86::Mnemonic::{Bts, Cmpxchg, Xchg};
    let decoded = annotation.listing.decoded();
    hot.path.iter().any(|&index| matches!(decoded[index].mnemonic(), Xchg | Cmpxchg | Bts))
}

/// Several threads write to a line at the same time.
fn shared_line(annotation: &Annotation, hot: &HotLoop, accesses: &Accesses) -> Option<LoopFinding> {
    let instructions = annotation.listing.instructions();
    let mut busiest = accesses.busiest().into_iter();
    let (site, LineSharing { same_word, threads }) = busiest.find_map(|(site, all)| {
        let counts = is_enough(all, accesses);
        let shared = counts.then(|| sharing(all)).flatten()?;
        // Whoever only reads a line has a copy of it.
        let is_written = hot.path.iter().chain([&site]).any(|&index| {
            let class = instructions[index].class;
            let same = accesses.sites.get(&index).is_some_and(|others| on_same_lines(others, all));
            (class.stores || class.kind == InstructionKind::Lock) && same
        });
        is_written.then_some((site, shared))
    })?;
    let cause = LoopCause::SharedLine { same_word, threads };
    Some(LoopFinding { cause, instruction: site, weight: hot.weight, avoidable: 0.9 })
}

fn on_same_lines(one: &[Access], other: &[Access]) -> bool {
    let lines: std::collections::HashSet<u64> =
        other.iter().map(|access| access.address / crate::access::LINE).collect();
    let common = one.iter().filter(|access| lines.contains(&(access.address / crate::access::LINE)));
    common.count() * 2 >= one.len()
}

fn is_enough(all: &[Access], accesses: &Accesses) -> bool {
    all.len() >= LEAST_ADDRESSES && all.len() as f64 >= LEAST_OF_SAMPLES * accesses.samples as f64
}

/// Bytes that second-level TLBs of today have the places of, with pages of 4 KiB: 1,536 to 4,096 entries.
const TLB_REACH: u64 = 16 << 20;

/// Loads on very many pages, of which the caches hold the few lines that are used.
fn tlb_miss(
    hot: &HotLoop,
    shape: &Shape<'_>,
    accesses: &Accesses,
    caches: CacheSizes,
) -> Option<LoopFinding> {
    let (site, _, pages) = accesses.busiest().into_iter().find_map(|(site, all)| {
        let at = hot.path.iter().position(|&index| index == site)?;
        let is_load = shape.origins[at].is_some() && is_enough(all, accesses);
        let set = working_set(all).filter(|set| is_load && set.bytes <= caches.l3)?;
        let pages = set.sparse_pages.filter(|&pages| pages > TLB_REACH)?;
        Some((site, set, pages))
    })?;
    let bounds = shape.bounds;
    // A walk of the page tables takes as long as a load or two of the second level of the cache.
    let waited = THROUGHPUT[1];
    let avoidable = waited / (bounds.chain.max(bounds.issue) + waited);
    let cause = LoopCause::TlbMiss { pages };
    (avoidable >= 0.3).then_some(LoopFinding { cause, instruction: site, weight: hot.weight, avoidable })
}

/// Loads whose addresses are in no order and spread over more than the second level of the cache.
fn cache_miss(
    listing: &Listing,
    hot: &HotLoop,
    shape: &Shape<'_>,
    accesses: &Accesses,
    caches: CacheSizes,
) -> Option<LoopFinding> {
    let mut waited = 0.0;
    let mut largest: Option<(f64, usize, AccessPattern, WorkingSet)> = None;
    for (site, all) in accesses.busiest() {
        let Some(at) = hot.path.iter().position(|&index| index == site) else { continue };
        let Some(origin) = shape.origins[at].filter(|_| is_enough(all, accesses)) else { continue };
        let pattern = match origin {
            AddressOrigin::OwnLoad => AccessPattern::PointerChase,
            AddressOrigin::OtherLoad => AccessPattern::Gather,
            AddressOrigin::Computed => AccessPattern::Scattered,
            AddressOrigin::Strided if shape.is_long_stride(listing, hot, at) => AccessPattern::LongStride,
            AddressOrigin::Fixed | AddressOrigin::Strided => continue,
        };
        let Some(set) = working_set(all).filter(|set| set.bytes > caches.l2) else { continue };
        let level = usize::from(set.bytes > caches.l3);
        // Where nobody knows what the address was computed from it may have been another miss.
        let cycles = match pattern {
            AccessPattern::PointerChase => LATENCY[level],
            AccessPattern::Gather | AccessPattern::LongStride => THROUGHPUT[level],
            AccessPattern::Scattered if hot.repeats => THROUGHPUT[level],
            AccessPattern::Scattered => (LATENCY[level] * THROUGHPUT[level]).sqrt(),
        };
        waited += cycles;
        if largest.is_none_or(|(most, ..)| cycles > most) {
            largest = Some((cycles, site, pattern, set));
        }
    }
    let (_, site, pattern, set) = largest?;
    let bounds = shape.bounds;
    let least = if hot.repeats { bounds.chain.max(bounds.issue) } else { bounds.issue };
    let avoidable = waited / (least + waited);
    (avoidable >= 0.3).then_some(LoopFinding {
        cause: LoopCause::CacheMiss {
            pattern,
            working_set: set.bytes,
            is_least: set.is_least,
            is_beyond_l3: set.bytes > caches.l3,
            addresses: set.samples,
        },
        instruction: site,
        weight: hot.weight,
        avoidable,
    })
}
