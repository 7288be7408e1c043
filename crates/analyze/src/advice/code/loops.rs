//! Rules on the causes of hot loops' time. Which cause a loop has is decided in [`loops`](crate::loops).

use super::spent::LEAST_FUNCTION;
use super::{CodeRule, GainModel, Rule, part, percent, size, text, word};
use crate::access::LEAST_OF_SITE;
use crate::loops::{
    CHAIN_TIMES, LEAST_WAITED, LoopCause, MOST_OF_FUNCTION, TLB_REACH, branches, dispatch, forwarding,
};

/// Source of the rules on lines that threads share.
const SHARED_SOURCE: &str = "measured: an addition takes 0.3 ns, on a line that another processor writes to 2.4 ns, an atomic one 5 and 18 ns";

pub(in crate::advice) fn busy_wait() -> CodeRule {
    let rule = Rule {
        name: "busy-wait",
        claim: "spins until another thread changes a variable",
        pattern: "a loop reads one variable again and again until another thread changes it, and does nothing else",
        threshold: text(format!(
            "a loop with {MOST_OF_FUNCTION}% of a function that has {LEAST_FUNCTION}% of processor time: it writes nothing, all its loads read fixed places, and one of \
             these decides whether it goes on"
        )),
        remedy: "wait on a condition variable, semaphore or futex; spin for some microseconds at most before",
        bound: "the processor time of the loop; the elapsed time stays, as what is waited for takes as long",
        source: "the loop's own code",
    };
    CodeRule::of_instructions(rule, 2.0, GainModel::CpuOnly { least: 0.95, most: 1.0 }, |code| {
        code.loops(|cause| matches!(cause, LoopCause::BusyWait { .. }))
    })
}

pub(in crate::advice) fn false_sharing() -> CodeRule {
    let rule = Rule {
        name: "false-sharing",
        claim: "writes to a cache line that other threads write to",
        pattern: "threads write to different variables that lie in one cache line, which moves between their processors at each write",
        threshold: shared_threshold(),
        remedy: "put what each thread writes into lines of its own: alignas(64), padding, a local variable that is written back at the end",
        bound: "the loop, but for what its instructions take",
        source: SHARED_SOURCE,
    };
    CodeRule::of_instructions(rule, 2.0, GainModel::Loops { least: 0.6, most: 1.1 }, |code| {
        code.own_loops(|cause| matches!(cause, LoopCause::SharedLine { same_word: false, .. }))
    })
}

pub(in crate::advice) fn true_sharing() -> CodeRule {
    let rule = Rule {
        name: "true-sharing",
        claim: "writes to a variable that other threads write to",
        pattern: "threads write to one variable, whose cache line moves between their processors at each write",
        threshold: shared_threshold(),
        remedy: "count in each thread and add up at the end, or write to it once for many steps",
        bound: "the loop, but for what its instructions take",
        source: SHARED_SOURCE,
    };
    CodeRule::of_instructions(rule, 2.0, GainModel::Loops { least: 0.6, most: 1.1 }, |code| {
        code.own_loops(|cause| matches!(cause, LoopCause::SharedLine { same_word: true, .. }))
    })
}

pub(in crate::advice) fn cache_miss() -> CodeRule {
    let rule = Rule {
        name: "cache-miss",
        claim: "waits for data that is not in the caches",
        pattern: "a loop waits for its data: the addresses that its loads read are in no order, and spread over more memory than the caches \
                  near the processor hold",
        threshold: text(format!(
            "sampled addresses of a load in a function with {LEAST_FUNCTION}% of processor time, spread over more than the second level of the cache; \
             what they wait for is at least {} of a round",
            percent(LEAST_WAITED)
        )),
        remedy: "make the data smaller or denser (arrays instead of links, 32-bit indices, parts that are used together side by side), go \
                 through it in order, prefetch what is needed next, work on several at a time",
        bound: "the loop, but for what its instructions take with all data at hand",
        source: "Drepper, What every programmer should know about memory (2007): 3 cycles to the first cache, 240 to main memory",
    };
    CodeRule::of_instructions(rule, 2.0, GainModel::Loops { least: 0.3, most: 1.2 }, |code| {
        code.own_loops(|cause| matches!(cause, LoopCause::CacheMiss { .. }))
    })
}

pub(in crate::advice) fn huge_pages() -> CodeRule {
    let rule = Rule {
        name: "huge-pages",
        claim: "misses the TLB: it works on a few lines of very many pages",
        pattern: "loads are spread over more pages than the TLB has room for, of each of which few lines are used",
        threshold: text(format!(
            "sampled addresses of a load in a function with {LEAST_FUNCTION}% of processor time, on more than {} of pages, their lines no more than \
             the last level of the cache holds",
            size(TLB_REACH)
        )),
        remedy: "huge pages (madvise MADV_HUGEPAGE, transparent_hugepage=always), or what is used together side by side",
        bound: "the loop, but for what its instructions take",
        source: "Linux, Documentation/admin-guide/mm/transhuge.rst: one entry of the TLB maps 2 MiB",
    };
    CodeRule::of_instructions(rule, 5.0, GainModel::Loops { least: 0.5, most: 1.0 }, |code| {
        code.loops(|cause| matches!(cause, LoopCause::TlbMiss { .. }))
    })
}

pub(in crate::advice) fn linear_search() -> CodeRule {
    let rule = Rule {
        name: "linear-search",
        claim: "searches element by element",
        pattern: "a loop compares one element after the other until one fits, and does nothing else",
        threshold: text(format!(
            "a loop with {MOST_OF_FUNCTION}% of a function that has {LEAST_FUNCTION}% of processor time: it loads in order, compares, leaves upon a result, and writes nothing"
        )),
        remedy: "an index: a hash map, a sorted array and bisection; or keep the element that was found",
        bound: "the search; a look-up in an index remains",
        source: "the loop's own code",
    };
    CodeRule::of_instructions(rule, 5.0, GainModel::Parts { least: 0.9, most: 1.0, callers: 0.0 }, |code| {
        code.loops(|cause| matches!(cause, LoopCause::LinearSearch))
    })
}

pub(in crate::advice) fn dependency_chain() -> CodeRule {
    let rule = Rule {
        name: "dependency-chain",
        claim: "follows a chain of pointers, each load waiting for the result before it",
        pattern: "a loop follows pointers: each load waits for the one before, although its data is in the caches",
        threshold: text(format!(
            "a loop whose chain of loads takes {CHAIN_TIMES} times as long as its instructions, in a function with {LEAST_FUNCTION}% of processor time"
        )),
        remedy: "an array in place of the list, so that loads needn't wait for each other; several elements in one node; several lists at a time",
        bound: "the loop, but for what its instructions take",
        source: "Agner Fog, Instruction tables: 4 to 5 cycles from a load to the next that depends on it",
    };
    CodeRule::of_instructions(rule, 5.0, GainModel::Loops { least: 0.4, most: 1.25 }, |code| {
        code.loops(|cause| matches!(cause, LoopCause::CachedChase { .. }))
    })
}

pub(in crate::advice) fn store_forwarding() -> CodeRule {
    let rule = Rule {
        name: "store-forwarding",
        claim: "loads what was just stored in parts (store forwarding fails)",
        pattern: "a load takes bytes of a store shortly before it that the store does not hold all of",
        threshold: text(format!(
            "a load whose bytes the last store to them does not hold all of, in a loop, with {}% of a function that has {LEAST_FUNCTION}% of processor time",
            forwarding::LEAST_SHARE
        )),
        remedy: "put the parts together in a register (shifts, or), or load them with the size that they were stored with",
        bound: "the waiting; the loop takes as long as its instructions without it",
        source: "Agner Fog, Microarchitecture: a load that no store can serve waits some 12 cycles for the cache",
    };
    CodeRule::of_instructions(rule, 5.0, GainModel::Loops { least: 0.75, most: 1.3 }, |code| {
        code.own_loops(|cause| matches!(cause, LoopCause::StoreForwarding { .. }))
    })
}

pub(in crate::advice) fn interpreter_dispatch() -> CodeRule {
    let rule = Rule {
        name: "interpreter-dispatch",
        claim: "dispatches by an indirect jump for each step (interpreter loop)",
        pattern: "a loop interprets a program or a table, step by step, by jumps whose targets differ",
        threshold: text(format!(
            "{} targets with samples that only indirect jumps lead to, and {}% of a function in these jumps and at their targets",
            word(dispatch::LEAST_TARGETS as u64),
            dispatch::LEAST_SHARE
        )),
        remedy: "do more with each step (larger operations, operations fused), compile the program to closures or machine code, or run each step for many elements",
        bound: "the loop; what its steps compute remains",
        source: "Ertl and Gregg, The Structure and Performance of Efficient Interpreters (2003)",
    };
    CodeRule::of_instructions(rule, 5.0, GainModel::Unknown, |code| {
        code.own_loops(|cause| matches!(cause, LoopCause::Dispatch { .. }))
    })
}

pub(in crate::advice) fn branch_miss() -> CodeRule {
    let rule = Rule {
        name: "branch-miss",
        claim: "branches on data that no predictor can know (branch mispredictions)",
        pattern: "a round of a loop takes far longer than its instructions, loads and chains explain, and a branch in it depends on loaded data",
        threshold: slow_round_threshold(branches::LEAST_TIMES, branches::LEAST_BEYOND),
        remedy: "compute without the branch (a mask, min and max, a conditional move), sort the data first, or do each case for all its elements",
        bound: "the loop beyond what its instructions take",
        source: "measured: a wrong prediction takes 24 cycles; bench/verdict has a program",
    };
    CodeRule::of_instructions(rule, 5.0, GainModel::Loops { least: 0.7, most: 1.1 }, |code| {
        code.own_loops(|cause| matches!(cause, LoopCause::Mispredictions { .. }))
    })
}

pub(in crate::advice) fn denormals() -> CodeRule {
    let rule = Rule {
        name: "denormals",
        claim: "computes with numbers so near zero that the processor needs help (denormal numbers)",
        pattern: "a round of a loop of arithmetic takes far longer than its instructions, loads and chains explain, and no branch depends on its data",
        threshold: slow_round_threshold(branches::ASSISTED_TIMES, branches::LEAST_ASSIST),
        remedy: "have them taken for zero (-ffast-math when linking, or _MM_SET_FLUSH_ZERO_MODE and _MM_SET_DENORMALS_ZERO_MODE), or keep values from fading away: add a small constant, stop at a limit",
        bound: "the loop beyond what its instructions take",
        source: "Agner Fog, The microarchitecture of Intel, AMD and VIA CPUs: some 150 cycles for each on processors of Intel, few on those of AMD",
    };
    CodeRule::of_instructions(rule, 5.0, GainModel::Loops { least: 0.7, most: 1.1 }, |code| {
        code.own_loops(|cause| matches!(cause, LoopCause::Assists { .. }))
    })
}

fn shared_threshold() -> &'static str {
    text(format!(
        "sampled addresses of an instruction in a function with {LEAST_FUNCTION}% of processor time: at least two threads, each with {} \
         of them, at the same time",
        part(LEAST_OF_SITE)
    ))
}

/// A round that takes far longer than anything about it explains.
fn slow_round_threshold(times: f64, cycles: f64) -> &'static str {
    text(format!(
        "{times} times the bound of its instructions and {cycles} cycles more, by addresses and times of samples, in a function with {LEAST_FUNCTION}% of processor time; loads near by, no divisions, no calls"
    ))
}
