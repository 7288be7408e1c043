//! The reason why a function's hot loop takes as long as it does, as far as its code and its data show it.
//!
//! A cause is only reported if similar ones are ruled out: a load with most of a function's time may miss the caches, wait for the
//! result before it, or attract samples of something else. The working set's size and the origin of the address decide between these. If neither is
//! known, there is no cause.

use super::branches::{assists, branches, pace, step_of};
use super::dispatch::dispatch;
use super::finding::{LoopCause, LoopFinding};
use super::forwarding::forwarding;
use super::memory::{AccessPattern, CacheSizes};
use super::{AddressOrigin, HotLoop, LoopBounds, Operands, bounds, origin};
use crate::access::{Access, Accesses, LineSharing, WorkingSet, sharing, working_set};
use crate::annotate::{Annotation, InstructionKind, Listing};
use crate::isa::{Operation, Register, convention};

/// A stride of half a page or more, in bytes: prefetching stops at the page boundary (Intel's optimization manual, 2.1.5.4).
const LONG_STRIDE: f64 = 2048.0;

/// Least number of addresses for a conclusion.
const LEAST_ADDRESSES: usize = 30;
/// Least share of all samples with registers for a site to count.
const LEAST_OF_SAMPLES: f64 = 0.1;
/// Least share of a function, in percent, of a loop that does nothing but wait or search.
pub(crate) const MOST_OF_FUNCTION: f64 = 60.0;
/// Least duration of a chain of loads, as a multiple of that of the loop's instructions.
pub(crate) const CHAIN_TIMES: f64 = 1.5;
/// Least part of an iteration that is spent waiting for memory.
pub(crate) const LEAST_WAITED: f64 = 0.3;
/// Longest busy wait, in instructions.
const LONGEST_WAIT: usize = 16;
/// Largest number of instructions in a search loop, unrolled or not.
const LONGEST_SEARCH: usize = 48;

/// Cycles that a load from the last-level cache and one from main memory cost: dependent loads, and independent loads that
/// overlap. Measured on machines of 2019 to 2025; a factor of two would not change the conclusions.
const LATENCY: [f64; 2] = [50.0, 300.0];
const THROUGHPUT: [f64; 2] = [7.0, 35.0];

/// Returns the cause, if it is one of these. `operands` are those of the function's instructions.
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

/// Facts about a loop that several checks use.
struct Shape<'o> {
    /// By position on the path.
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

    /// Whether a strided load advances by more than processors prefetch.
    fn is_long_stride(&self, listing: &Listing, hot: &HotLoop, at: usize) -> bool {
        hot.repeats && step_of(listing, &self.operands, hot, at).is_some_and(|step| step.abs() >= LONG_STRIDE)
    }
}

/// Finds a busy wait: all loads read fixed locations, one of which decides whether to continue; nothing is written except, if a lock is tried,
/// that location.
fn busy_wait(annotation: &Annotation, hot: &HotLoop, shape: &Shape<'_>) -> Option<LoopFinding> {
    let instructions = annotation.listing.instructions();
    let kind = |at: usize| instructions[hot.path[at]].class.kind;
    let all = 0..hot.path.len();
    if !hot.repeats || hot.path.len() > LONGEST_WAIT || annotation.share(hot.weight) < MOST_OF_FUNCTION {
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
    // Counting with an atomic instruction is work, not waiting.
    if takes_lock && !tries_lock(annotation, hot) {
        return None;
    }
    let cause = LoopCause::BusyWait { takes_lock };
    Some(LoopFinding { cause, instruction: hot.path[load], weight: hot.weight, avoidable: 1.0 })
}

/// Finds a linear search: elements are loaded in order and compared, a branch on the result leaves the loop, nothing is stored or accumulated.
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
        // A sum, a product or a maximum: work that needs all elements.
        let adds_up = operands.writes.iter().any(|register| {
            operands.reads.contains(register)
                && !is_flow(&annotation.listing, *register)
                && decoded[*index].increment(*register).is_none()
        });
        plain && !operands.stores && class.vector_bits == 0 && !adds_up
    };
    if !hot.repeats
        || hot.body.len() > LONGEST_SEARCH
        || !hot.body.iter().all(is_search)
        || annotation.share(hot.weight) < MOST_OF_FUNCTION
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

/// Whether a branch that depends on a load's result leaves the loop.
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

/// Whether it is the stack pointer or not a general-purpose register.
fn is_flow(listing: &Listing, register: Register) -> bool {
    !register.is_general() || register == convention(listing.set()).stack
}

/// Finds a load whose address it read itself in the previous iteration, unmodified: a pointer, not an index into a table.
fn cached_chase(
    annotation: &Annotation,
    hot: &HotLoop,
    shape: &Shape<'_>,
    accesses: &Accesses,
) -> Option<LoopFinding> {
    let bounds = shape.bounds;
    if !hot.repeats || bounds.chain < CHAIN_TIMES * bounds.issue || !bounds.has_loads || bounds.has_division {
        return None;
    }
    let is_direct = |at: usize| {
        let memory = annotation.listing.decoded()[hot.path[at]].memory();
        let base = memory.filter(|memory| memory.index.is_none()).and_then(|memory| memory.base);
        base.is_some_and(|base| shape.operands[at].writes.contains(&base))
    };
    let at =
        (0..hot.path.len()).find(|&at| shape.origins[at] == Some(AddressOrigin::OwnLoad) && is_direct(at))?;
    let all = accesses.sites.get(&hot.path[at])?;
    let set = working_set(all).filter(|_| all.len() >= LEAST_ADDRESSES)?;
    // A single element is not a list.
    let is_list = set.bytes >= 8 * crate::access::LINE;
    is_list.then_some(LoopFinding {
        cause: LoopCause::CachedChase { working_set: set.bytes, cycles: bounds.chain },
        instruction: hot.path[at],
        weight: hot.weight,
        avoidable: 1.0 - bounds.issue / bounds.chain,
    })
}

/// Whether a branch depends on a load's result, directly or after computations.
fn decides(shape: &Shape<'_>, load: usize, kind: &impl Fn(usize) -> InstructionKind) -> bool {
    let operands = shape.operands[load];
    let mut holds: Vec<Register> =
        operands.writes.iter().copied().filter(|&register| operands.advances != Some(register)).collect();
    let mut is_compared = operands.sets_flags;
    for at in load + 1..shape.operands.len() {
        let operands = shape.operands[at];
        let uses = operands.reads.iter().any(|register| holds.contains(register))
            || operands.reads_flags && is_compared;
        if kind(at) == InstructionKind::Branch {
            return uses;
        }
        if uses {
            holds.extend(&operands.writes);
        }
        // The branch depends on the last instruction before it that sets flags.
        if operands.sets_flags {
            is_compared = uses;
        }
    }
    false
}

/// Whether a loop exchanges or compares and exchanges, and repeats depending on the result.
fn tries_lock(annotation: &Annotation, hot: &HotLoop) -> bool {
    let decoded = annotation.listing.decoded();
    hot.path.iter().any(|&index| decoded[index].operation() == Operation::Exchange)
}

/// Finds a cache line that several threads write to at the same time.
fn shared_line(annotation: &Annotation, hot: &HotLoop, accesses: &Accesses) -> Option<LoopFinding> {
    let instructions = annotation.listing.instructions();
    let mut busiest = accesses.busiest().into_iter();
    let (site, LineSharing { same_word, threads }) = busiest.find_map(|(site, all)| {
        let counts = is_enough(all, accesses);
        let shared = counts.then(|| sharing(all)).flatten()?;
        // Threads that only read a line have their own copies.
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

/// Bytes covered by the second-level TLBs of current processors with 4 KiB pages: 1,536 to 4,096 entries.
pub(crate) const TLB_REACH: u64 = 16 << 20;

/// Finds loads on very many pages with few lines used in each, which fit into the caches.
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
    // A page walk takes as long as one or two loads from the second-level cache.
    let waited = THROUGHPUT[1];
    let avoidable = waited / (bounds.chain.max(bounds.issue) + waited);
    let cause = LoopCause::TlbMiss { pages };
    (avoidable >= LEAST_WAITED).then_some(LoopFinding {
        cause,
        instruction: site,
        weight: hot.weight,
        avoidable,
    })
}

/// Finds loads with irregular addresses spread over more than the second-level cache.
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
        // If the origin of the address is unknown, it may have been another miss.
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
    (avoidable >= LEAST_WAITED).then_some(LoopFinding {
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
