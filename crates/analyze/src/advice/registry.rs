//! The table of all rules, by subject: stanzas of `rules/*.toml`, and rules that are functions.
//!
//! Of rules with one name that find the same cost, the earlier one goes first.

use std::sync::LazyLock;

use super::calls::{
    CallRule, brk_churn, call_rate, clock_calls, copy_loop, delayed_ack, enoent, epoll_one, epoll_spin,
    fault_rate, fsync, futex_wait, getdents_small, huge_pages, io_under_lock, ioctl, mmap_churn, mprotect,
    not_ready, one_request, poll_many, proc_scan, purge, reopen, restat, seek_read, short_sleep,
    short_timeouts, sleep_under_lock, small_io, small_messages, sync_write,
};
use super::code::{
    CodeRule, channels, clones, first_touch, growth, instructions, loops, python, regex_compile,
    thread_start, unoptimised, virtual_calls,
};
use super::rule::ProgramRule;
use super::stanza::{self, Stanza};
use super::{exit_teardown, fork_then_exec, fork_without_exec, short_processes, waiting_on_cpu};

/// Rules on one matter.
pub(super) struct Subject {
    pub title: &'static str,
    /// File with the rules that are data.
    pub data: &'static str,
    /// The other rules: on user code, on single calls, and on the processes of a program.
    code: &'static [fn() -> CodeRule],
    calls: &'static [fn() -> CallRule],
    programs: &'static [fn() -> ProgramRule],
}

const NONE: Subject = Subject { title: "", data: "", code: &[], calls: &[], programs: &[] };

/// All rules.
pub(super) const SUBJECTS: [Subject; 10] = [
    Subject {
        title: "Memory",
        data: include_str!("../../rules/memory.toml"),
        code: &[first_touch::rule, growth::rule, clones::rule],
        ..NONE
    },
    Subject {
        title: "Strings and text",
        data: include_str!("../../rules/text.toml"),
        code: &[regex_compile::rule],
        ..NONE
    },
    Subject {
        title: "Data structures and algorithms",
        data: include_str!("../../rules/algorithms.toml"),
        code: &[loops::linear_search],
        ..NONE
    },
    Subject { title: "Files and logs", data: include_str!("../../rules/files.toml"), ..NONE },
    Subject {
        title: "Threads and clocks",
        data: include_str!("../../rules/threads.toml"),
        code: &[
            thread_start::rule,
            channels::rule,
            loops::busy_wait,
            loops::false_sharing,
            loops::true_sharing,
        ],
        ..NONE
    },
    Subject { title: "Runtimes", data: include_str!("../../rules/runtimes.toml"), ..NONE },
    Subject {
        title: "Python",
        data: include_str!("../../rules/python.toml"),
        code: &[
            python::slices::growing_list,
            python::slices::slices,
            python::exceptions::rule,
            python::logging::rule,
            python::gil::rule,
            python::rows::rule,
            python::scan::rule,
            python::calls::rule,
            python::recursion::rule,
        ],
        ..NONE
    },
    Subject {
        title: "Instructions and loops",
        code: &[
            unoptimised::rule,
            instructions::division,
            instructions::square_roots,
            instructions::atomics,
            instructions::stack_traffic,
            loops::cache_miss,
            loops::huge_pages,
            loops::dependency_chain,
            loops::store_forwarding,
            loops::interpreter_dispatch,
            loops::branch_miss,
            loops::denormals,
            virtual_calls::rule,
        ],
        ..NONE
    },
    Subject {
        title: "System calls and page faults",
        data: include_str!("../../rules/calls.toml"),
        calls: &[
            brk_churn::rule,
            mmap_churn::rule,
            fault_rate::rule,
            huge_pages::rule,
            purge::rule,
            mprotect::rule,
            small_io::rule,
            seek_read::rule,
            copy_loop::rule,
            fsync::rule,
            sync_write::rule,
            enoent::rule,
            reopen::rule,
            restat::rule,
            getdents_small::rule,
            proc_scan::rule,
            futex_wait::rule,
            short_sleep::rule,
            sleep_under_lock::rule,
            short_timeouts::rule,
            io_under_lock::rule,
            clock_calls::rule,
            poll_many::rule,
            epoll_spin::rule,
            epoll_one::rule,
            not_ready::rule,
            ioctl::rule,
            small_messages::rule,
            one_request::rule,
            delayed_ack::rule,
            call_rate::rule,
        ],
        ..NONE
    },
    Subject {
        title: "Processes",
        programs: &[
            fork_then_exec::rule,
            fork_without_exec::rule,
            short_processes::rule,
            exit_teardown::rule,
            waiting_on_cpu::rule,
        ],
        ..NONE
    },
];

/// The rules of a subject.
pub(super) struct Rules {
    pub title: &'static str,
    pub code: Vec<CodeRule>,
    pub calls: Vec<CallRule>,
    pub programs: Vec<ProgramRule>,
}

/// The rules of each subject, read and built on first use.
pub(super) static RULES: LazyLock<Vec<Rules>> = LazyLock::new(|| all().expect("rules that tests have read"));

/// Reads and builds all rules.
pub(super) fn all() -> Result<Vec<Rules>, String> {
    let read =
        |subject: &Subject| stanza::read(subject.data).map_err(|error| format!("{}: {error}", subject.title));
    let stanzas = SUBJECTS.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let known = stanzas.concat();
    let of_subject = |(subject, stanzas): (&Subject, Vec<Stanza>)| {
        let (mut code, mut calls) = (Vec::new(), Vec::new());
        for stanza in stanzas {
            code.extend(stanza.code_rule(&known)?);
            calls.extend(stanza.call_rule()?);
        }
        code.extend(subject.code.iter().map(|rule| rule()));
        calls.extend(subject.calls.iter().map(|rule| rule()));
        let programs = subject.programs.iter().map(|rule| rule()).collect();
        Ok(Rules { title: subject.title, code, calls, programs })
    };
    SUBJECTS.iter().zip(stanzas).map(of_subject).collect()
}

/// Returns the rules on user code.
pub(super) fn code_rules() -> impl Iterator<Item = &'static CodeRule> {
    RULES.iter().flat_map(|rules| &rules.code)
}

/// Returns the rules on single calls.
pub(super) fn call_rules() -> impl Iterator<Item = &'static CallRule> {
    RULES.iter().flat_map(|rules| &rules.calls)
}

/// Returns the rules on the processes of a program.
pub(super) fn program_rules() -> impl Iterator<Item = &'static ProgramRule> {
    RULES.iter().flat_map(|rules| &rules.programs)
}
