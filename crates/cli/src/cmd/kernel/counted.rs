//! Calls that were counted and timed in addition to samples, by row of the table.

use std::borrow::Cow;
use std::collections::BTreeMap;

use anyhow::{Result, anyhow};
use plumb_analyze::Cause;
use plumb_capture_bpf::{CallFacts, CallSums, Events, LoadError, Overhead, Per, SummedBy};
use plumb_profile::Profile;
use plumb_syscalls::{Abi, Account, named, path_argument, takes_file};

/// Grouping of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Apart {
    /// Threads
    Thread,
    /// Processes
    Process,
    /// Files that a descriptor names; other calls are left out
    File,
}

/// Loads the BPF programs that count calls, grouped by `apart`, and time them if `latency`.
pub(super) fn load(latency: bool, apart: Option<Apart>) -> Result<CallSums> {
    let per = match apart {
        None => Per::Call,
        Some(Apart::Thread) => Per::Thread,
        Some(Apart::Process) => Per::Process,
        Some(Apart::File) => Per::File,
    };
    let facts = |number| {
        let name = named(Abi::NATIVE, number);
        CallFacts { text: path_argument(&name), takes_file: takes_file(&name) }
    };
    CallSums::load(latency, per, facts).map_err(|error| refusal(&error))
}

fn refusal(error: &LoadError) -> anyhow::Error {
    anyhow!(
        "system calls can't be counted: {error}{}\
         \n  without:  plumb kernel shows where processor time went; strace -c counts, and slows the program down",
        error.remedy()
    )
}

/// Calls of one name.
pub(super) struct Call {
    pub name: Cow<'static, str>,
    /// Counts and times, less the tracing overhead.
    pub account: Account,
}

/// Calls of a thread, process or file.
pub(super) struct Group {
    /// Thread or process ID, or a file's inode number.
    pub id: u64,
    pub name: String,
    pub calls: Vec<Call>,
}

/// All counts.
pub(super) struct Counted {
    /// Ordered by time, or by number where calls are not timed; largest first.
    pub calls: Vec<Call>,
    /// The counts by thread, process or file, if asked for.
    pub groups: Vec<Group>,
    pub events: Events,
    pub tax: Overhead,
    pub is_timed: bool,
    /// The counts by row of the table.
    by_row: BTreeMap<String, Account>,
}

impl Counted {
    /// Counts from the time of the recording.
    pub fn of(sums: &CallSums, profile: &Profile) -> Self {
        let (mut all, mut apart) = (BTreeMap::new(), BTreeMap::<(u32, u64), BTreeMap<_, _>>::new());
        for (SummedBy { number, who, file }, account) in sums.accounts() {
            all.entry(number).or_insert_with(Account::default).add(&account);
            if who != 0 || file != 0 {
                apart.entry((who, file)).or_default().insert(number, account);
            }
        }
        let mut files = sums.file_names();
        let floor = sums.tax().floor_ns();
        let group = |((who, file), accounts): ((u32, u64), _)| Group {
            id: if file == 0 { who.into() } else { file },
            name: if file == 0 {
                name_of(profile, who)
            } else {
                files.remove(&(who, file)).unwrap_or_default()
            },
            calls: calls(accounts, floor),
        };
        let mut groups: Vec<Group> = apart.into_iter().map(group).collect();
        let weight = |group: &Group| group.calls.iter().map(weight).sum::<u64>();
        groups.sort_by_key(|group| std::cmp::Reverse(weight(group)));
        let (calls, events) = (calls(all, floor), sums.events());
        let mut by_row: BTreeMap<String, Account> = BTreeMap::new();
        for call in &calls {
            by_row.entry(row_of(&call.name)).or_default().add(&call.account);
        }
        let made = |calls| Account { calls, ..Account::default() };
        by_row
            .entry(Cause::Fault.name().into())
            .or_default()
            .add(&made(events.minor_faults + events.major_faults));
        by_row.entry(Cause::Exit.name().into()).or_default().add(&made(events.ended));
        Counted { calls, groups, events, tax: sums.tax(), is_timed: sums.is_timed(), by_row }
    }

    /// The counts of a row of the table.
    pub fn of_row(&self, name: &str) -> Option<&Account> {
        self.by_row.get(name)
    }

    /// Names and causes of the rows without a sample.
    pub fn unsampled<'a>(
        &'a self,
        is_there: impl Fn(&str) -> bool + 'a,
    ) -> impl Iterator<Item = (&'a str, Cause)> {
        let causes = [Cause::Fault, Cause::Exit, Cause::Exec, Cause::Fork];
        self.by_row.iter().filter(move |(name, account)| account.calls > 0 && !is_there(name)).map(
            move |(name, _)| {
                let cause = causes.into_iter().find(|cause| cause.name() == name).unwrap_or(Cause::Call);
                (name.as_str(), cause)
            },
        )
    }
}

/// The row that contains a call's time.
fn row_of(call: &str) -> String {
    match Cause::of_call(call) {
        Cause::Call => call.to_owned(),
        cause => cause.name().to_owned(),
    }
}

fn calls(accounts: BTreeMap<Option<u32>, Account>, floor: u64) -> Vec<Call> {
    let call = |(number, account): (Option<u32>, Account)| Call {
        name: number.map_or("others".into(), |number| named(Abi::NATIVE, number)),
        account: Account { times: account.times.map(|times| times.without(floor)), ..account },
    };
    let mut calls: Vec<Call> = accounts.into_iter().map(call).collect();
    calls.sort_by(|one, other| (weight(other), &one.name).cmp(&(weight(one), &other.name)));
    calls
}

/// Sort key of a call: its total time, or the number of calls if not timed.
fn weight(call: &Call) -> u64 {
    call.account.times.as_ref().map_or(call.account.calls, |times| times.wall_ns)
}

/// Name of a thread, or of a process by its main thread.
fn name_of(profile: &Profile, who: u32) -> String {
    let threads = profile.threads.rows();
    let own = threads.iter().rfind(|thread| thread.tid == who);
    let any = || threads.iter().rfind(|thread| profile.processes[thread.process].pid == who);
    own.or_else(any).map_or(String::new(), |thread| profile.strings.get(thread.comm).to_owned())
}
