//! Calls that a process repeats on one file, periodically or in bursts.
//!
//! Elsewhere: where bursts begin and end (`bursts`).

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;

use crate::{Abi, Bursts, Descriptors, Latencies, Moment, Signature, SystemCall, bursts, named};

/// Names of arguments that give the size of a buffer.
const SIZES: [&str; 6] = ["count", "size", "len", "bufsiz", "maxevents", "vlen"];

/// Calls with the same process, number and file.
#[derive(Clone, Debug, Default)]
pub struct CallGroup {
    /// Name of the call.
    pub call: Cow<'static, str>,
    /// File of the descriptor that it takes.
    pub file: Option<String>,
    /// Process id.
    pub pid: u32,
    /// Name of the thread that made the last call.
    pub comm: String,
    /// Latencies of the calls.
    pub latencies: Latencies,
    /// Smallest and largest requested size, if the call has a buffer.
    pub buffer: Option<[u64; 2]>,
    /// Sum of the returned sizes.
    pub given: u64,
    moments: Vec<Moment>,
}

impl CallGroup {
    /// Whether the calls fill most of the time between bursts: then they are the wait until the next burst, not its work.
    pub fn waits(&self, bursts: &Bursts) -> bool {
        let all = bursts.period_ns.saturating_mul(bursts.number as u64);
        self.latencies.total_ns() > all / 2
    }
}

/// Traced calls by process, number and file.
#[derive(Debug, Default)]
pub struct CallGroups {
    groups: HashMap<(u32, Abi, u32, Option<String>), CallGroup>,
    remembered: usize,
    /// Number of calls after the first [`CallGroups::MOST`], which are not in any group.
    pub forgotten: u64,
}

impl CallGroups {
    /// Most calls whose times are kept.
    pub const MOST: usize = 1 << 20;

    /// Adds a call.
    pub fn add(&mut self, call: &SystemCall<'_>, signature: &Signature, descriptors: &mut Descriptors) {
        let Some(latency) = call.latency_ns() else { return };
        if self.remembered == Self::MOST {
            self.forgotten += 1;
            return;
        }
        self.remembered += 1;
        let fd = ["fd", "epfd"].iter().find_map(|name| signature.place(name));
        let file =
            fd.and_then(|place| descriptors.name(call.pid, call.args[place] as i32)).map(str::to_owned);
        let group = self.groups.entry((call.pid, call.abi, call.number, file.clone()));
        let name = || named(call.abi, call.number);
        let group =
            group.or_insert_with(|| CallGroup { call: name(), file, pid: call.pid, ..CallGroup::default() });
        group.comm = String::from_utf8_lossy(call.comm).into_owned();
        group.moments.push(Moment { begin_ns: call.begin_ns, end_ns: call.end_ns });
        group.latencies.add(latency);
        let size = SIZES.iter().find_map(|name| signature.place(name)).map(|place| call.args[place]);
        if let (Some(size), Some(value)) = (size, call.value()) {
            let [least, most] = group.buffer.unwrap_or([size; 2]);
            group.buffer = Some([least.min(size), most.max(size)]);
            group.given += u64::try_from(value).unwrap_or(0);
        }
    }

    /// Groups that come by the clock or in bursts, most time first; those that mostly wait come last.
    pub fn repeated(&mut self) -> Vec<(&CallGroup, Bursts)> {
        let found = self.groups.iter_mut().filter_map(|(key, group)| {
            let bursts = bursts(&mut group.moments)?;
            let rank = (group.waits(&bursts), Reverse(group.latencies.total_ns()), key.0, key.2);
            Some((rank, (&*group, bursts)))
        });
        let mut found: Vec<_> = found.collect();
        found.sort_by_key(|(rank, _)| *rank);
        found.into_iter().map(|(_, found)| found).collect()
    }
}
