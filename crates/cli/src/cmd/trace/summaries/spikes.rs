//! Calls made periodically or in bursts, as text.

use std::fmt::Write as _;

use plumb_syscalls::{Bursts, CallGroup, CallGroups};

use super::time;

/// Most groups that are reported.
const SAID: usize = 20;

/// A paragraph for each group.
pub(super) fn text(groups: &mut CallGroups) -> String {
    let forgotten = groups.forgotten;
    let found = groups.repeated();
    let mut out = String::new();
    if found.is_empty() {
        out.push_str("no calls come by the clock or in bursts\n");
    }
    found.iter().take(SAID).for_each(|(calls, bursts)| paragraph(calls, bursts, &mut out));
    if found.len() > SAID {
        let _ = writeln!(out, "and {} more that took less time: fewer by -e", found.len() - SAID);
    }
    if forgotten > 0 {
        let most = CallGroups::MOST;
        let _ = writeln!(out, "{forgotten} calls after the first {most} were not looked at: fewer by -e");
    }
    out
}

fn paragraph(calls: &CallGroup, bursts: &Bursts, out: &mut String) {
    let latencies = &calls.latencies;
    let file = calls.file.as_ref().map(|file| format!(" of {}", file.escape_default())).unwrap_or_default();
    let _ = writeln!(out, "{}{file} by {}/{}", calls.call, calls.comm.escape_default(), calls.pid);
    let how = if bursts.is_regular { "every" } else { "irregularly, mostly after" };
    let number = if bursts.calls == 1 {
        "one call each".to_owned()
    } else {
        format!("{} calls each, which take {}", bursts.calls, time(bursts.length_ns))
    };
    let _ = writeln!(
        out,
        "  {how} {} (\u{b1} {}), {} times: {number}{}",
        time(bursts.period_ns),
        time(bursts.spread_ns),
        bursts.number,
        if calls.waits(bursts) { ", and waits most of that time" } else { "" }
    );
    let quantile = |share| time(latencies.quantile_ns(share).unwrap_or(0));
    let _ = writeln!(
        out,
        "  latency p50 {}, p90 {}, p99 {}, max {}; {} in {} calls",
        quantile(0.5),
        quantile(0.9),
        quantile(0.99),
        time(latencies.max_ns()),
        time(latencies.total_ns()),
        latencies.number()
    );
    if let Some([least, most]) = calls.buffer {
        let size = if least == most { most.to_string() } else { format!("{least} to {most}") };
        let given = calls.given / bursts.number.max(1) as u64;
        let _ = writeln!(out, "  buffer {size}, {given} given back each time");
    }
}
