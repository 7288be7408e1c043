//! Calls made periodically or in bursts.

use std::collections::HashMap;
use std::fmt::Write as _;

use plumb_syscalls::{Abi, Bursts, Descriptors, Latencies, Moment, Signature, SystemCall, bursts, named};
use serde_json::{Value, json};

use super::time;

/// Most calls whose times are kept; later ones are only counted.
const MOST: usize = 1 << 20;
/// Names of arguments that give the size of a buffer.
const SIZES: [&str; 6] = ["count", "size", "len", "bufsiz", "maxevents", "vlen"];
/// Most groups that are reported.
const SAID: usize = 20;

/// A group of calls: same process, same number, same file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    pid: u32,
    abi: Abi,
    number: u32,
    file: Option<String>,
}

/// The calls of a group.
#[derive(Debug, Default)]
struct Group {
    comm: String,
    moments: Vec<Moment>,
    latencies: Latencies,
    /// Smallest and largest requested size, and the sum of the returned sizes.
    sizes: Option<(u64, u64)>,
    given: u64,
}

/// The calls so far, by group.
#[derive(Debug, Default)]
pub(super) struct Spikes {
    groups: HashMap<Key, Group>,
    remembered: usize,
    forgotten: u64,
}

impl Spikes {
    /// Counts a call.
    pub fn add(&mut self, call: &SystemCall<'_>, signature: &Signature, descriptors: &mut Descriptors) {
        let Some(latency) = call.latency_ns() else { return };
        if self.remembered == MOST {
            self.forgotten += 1;
            return;
        }
        self.remembered += 1;
        let fd = ["fd", "epfd"].iter().find_map(|name| signature.place(name));
        let file =
            fd.and_then(|place| descriptors.name(call.pid, call.args[place] as i32)).map(str::to_owned);
        let key = Key { pid: call.pid, abi: call.abi, number: call.number, file };
        let group = self.groups.entry(key).or_default();
        group.comm = String::from_utf8_lossy(call.comm).into_owned();
        group.moments.push(Moment { begin_ns: call.begin_ns, end_ns: call.end_ns });
        group.latencies.add(latency);
        let size = SIZES.iter().find_map(|name| signature.place(name)).map(|place| call.args[place]);
        if let (Some(size), Some(value)) = (size, call.value()) {
            let (least, most) = group.sizes.unwrap_or((size, size));
            group.sizes = Some((least.min(size), most.max(size)));
            group.given += u64::try_from(value).unwrap_or(0);
        }
    }

    /// The bursts found, most time first; groups that mostly wait come last.
    fn found(&mut self) -> Vec<(&Key, &Group, Bursts)> {
        let found = self.groups.iter_mut().filter_map(|(key, group)| {
            let bursts = bursts(&mut group.moments)?;
            Some((key, &*group, bursts))
        });
        let mut found: Vec<_> = found.collect();
        found.sort_by(|(one, first, bursts), (other, second, others)| {
            let by_waiting = waits(first, bursts).cmp(&waits(second, others));
            let by_time = second.latencies.total_ns().cmp(&first.latencies.total_ns());
            by_waiting.then(by_time).then((one.pid, one.number).cmp(&(other.pid, other.number)))
        });
        found
    }

    /// The bursts as text.
    pub fn text(&mut self) -> String {
        let forgotten = self.forgotten;
        let found = self.found();
        let mut out = String::new();
        if found.is_empty() {
            out.push_str("no calls come by the clock or in bursts\n");
        }
        for (key, group, bursts) in found.iter().take(SAID) {
            paragraph(key, group, bursts, &mut out);
        }
        if found.len() > SAID {
            let _ = writeln!(out, "and {} more that took less time: fewer by -e", found.len() - SAID);
        }
        if forgotten > 0 {
            let _ = writeln!(out, "{forgotten} calls after the first {MOST} were not looked at: fewer by -e");
        }
        out
    }

    /// The bursts as JSON.
    pub fn json(&mut self) -> Vec<Value> {
        let one = |(key, group, bursts): &(&Key, &Group, Bursts)| {
            json!({
                "version": plumb_documents::JSON_VERSION,
            "call": named(key.abi, key.number),
                "file": key.file,
                "comm": group.comm,
                "pid": key.pid,
                "bursts": bursts.number,
                "period_ns": bursts.period_ns,
                "spread_ns": bursts.spread_ns,
                "regular": bursts.is_regular,
                "waits": waits(group, bursts),
                "calls_per_burst": bursts.calls,
                "burst_ns": bursts.length_ns,
                "calls": group.latencies.number(),
                "total_ns": group.latencies.total_ns(),
                "p50_ns": group.latencies.quantile_ns(0.5),
                "p99_ns": group.latencies.quantile_ns(0.99),
                "max_ns": group.latencies.max_ns(),
                "buffer": group.sizes.map(|(least, most)| [least, most]),
                "given": group.given,
            })
        };
        self.found().iter().map(one).collect()
    }
}

/// Whether the calls fill most of the time between them: then they are the wait until the next burst, not its work.
fn waits(group: &Group, bursts: &Bursts) -> bool {
    let all = bursts.period_ns.saturating_mul(bursts.number as u64);
    group.latencies.total_ns() > all / 2
}

fn paragraph(key: &Key, group: &Group, bursts: &Bursts, out: &mut String) {
    let call = named(key.abi, key.number);
    let file = key.file.as_ref().map(|file| format!(" of {}", file.escape_default())).unwrap_or_default();
    let _ = writeln!(out, "{call}{file} by {}/{}", group.comm.escape_default(), key.pid);
    let how = if bursts.is_regular { "every" } else { "irregularly, mostly after" };
    let calls = if bursts.calls == 1 {
        "one call each".to_owned()
    } else {
        format!("{} calls each, which take {}", bursts.calls, time(bursts.length_ns))
    };
    let _ = writeln!(
        out,
        "  {how} {} (\u{b1} {}), {} times: {calls}{}",
        time(bursts.period_ns),
        time(bursts.spread_ns),
        bursts.number,
        if waits(group, bursts) { ", and waits most of that time" } else { "" }
    );
    let quantile = |share| time(group.latencies.quantile_ns(share).unwrap_or(0));
    let _ = writeln!(
        out,
        "  latency p50 {}, p90 {}, p99 {}, max {}; {} in {} calls",
        quantile(0.5),
        quantile(0.9),
        quantile(0.99),
        time(group.latencies.max_ns()),
        time(group.latencies.total_ns()),
        group.latencies.number()
    );
    if let Some((least, most)) = group.sizes {
        let size = if least == most { most.to_string() } else { format!("{least} to {most}") };
        let given = group.given / bursts.number.max(1) as u64;
        let _ = writeln!(out, "  buffer {size}, {given} given back each time");
    }
}
