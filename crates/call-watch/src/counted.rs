//! Calls that were counted in addition to samples, by row of the table of kernel time.

use std::collections::BTreeMap;

use plumb_analyze::Cause;
use plumb_capture_bpf::{CallSums, SummedBy};
use plumb_profile::Profile;
use plumb_syscalls::{Account, CallsApart, CountedCall, CountedCalls, counted_calls};

/// Counted calls, also by row of the table.
pub struct CountedRows {
    /// All counts.
    pub all: CountedCalls,
    by_row: BTreeMap<String, Account>,
}

impl CountedRows {
    /// Takes the counts of a recording.
    pub fn of(sums: &CallSums, profile: &Profile) -> Self {
        let (mut all, mut apart) = (BTreeMap::new(), BTreeMap::<(u32, u64), BTreeMap<_, _>>::new());
        for (SummedBy { number, who, file }, account) in sums.accounts() {
            all.entry(number).or_insert_with(Account::default).add(&account);
            if who != 0 || file != 0 {
                apart.entry((who, file)).or_default().insert(number, account);
            }
        }
        let mut files = sums.file_names();
        let overhead = sums.tax();
        let floor = overhead.floor_ns();
        let group = |((who, file), accounts): ((u32, u64), _)| CallsApart {
            id: if file == 0 { who.into() } else { file },
            name: if file == 0 {
                name_of(profile, who)
            } else {
                files.remove(&(who, file)).unwrap_or_default()
            },
            calls: counted_calls(accounts, floor),
        };
        let mut groups: Vec<CallsApart> = apart.into_iter().map(group).collect();
        let weight = |group: &CallsApart| group.calls.iter().map(CountedCall::weight).sum::<u64>();
        groups.sort_by_key(|group| std::cmp::Reverse(weight(group)));
        let (calls, events) = (counted_calls(all, floor), sums.events());
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
        let all = CountedCalls { calls, groups, events, overhead, is_timed: sums.is_timed() };
        CountedRows { all, by_row }
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

/// Name of a thread, or of a process by its main thread.
fn name_of(profile: &Profile, who: u32) -> String {
    let threads = profile.threads.rows();
    let own = threads.iter().rfind(|thread| thread.tid == who);
    let any = || threads.iter().rfind(|thread| profile.processes[thread.process].pid == who);
    own.or_else(any).map_or(String::new(), |thread| profile.strings.get(thread.comm).to_owned())
}
