//! A packet a call.

use rustc_hash::FxHashMap;

use super::sizes::Sizes;
use super::{Basis, CallEvent, CallRule, Found, MOST, Measure, Rule, Watch, percent, rate};

const CALLS: &[&str] = &["sendto", "sendmsg", "recvfrom", "recvmsg"];
/// Below this many bytes, by the median.
const SMALL: u64 = 1024;
/// From this many calls a second on one socket.
const LEAST_PER_SECOND: f64 = 20_000.0;
/// What many in one call spare of a call's time: a 16 KiB message takes twice as long as one of a byte.
const SPARED: f64 = 0.5;

pub(super) const RULE: CallRule = CallRule {
    rule: Rule {
        name: "small-messages",
        claim: "sends small messages, one system call each",
        pattern: "a socket sends or receives small messages, one a call",
        threshold: "20,000 calls a second on one socket with a median below 1 KiB",
        remedy: "sendmmsg and recvmmsg for datagrams, writev or TCP_CORK for streams, UDP_SEGMENT (GSO)",
        bound: "half of these calls",
        source: "sendmmsg(2); measured: 1.35 us to send and receive a byte, 2.6 us for 16 KiB",
    },
    calls: CALLS,
    also_watched: &[],
    faults: false,
    watch: || Box::<Sockets>::default(),
};

#[derive(Default)]
struct Sockets {
    calls: u64,
    sockets: FxHashMap<(u32, u64), Sizes>,
}

impl Watch for Sockets {
    fn call(&mut self, call: &CallEvent<'_>) {
        self.calls += 1;
        let Ok(bytes) = u64::try_from(call.result) else { return };
        let key = (call.pid, call.arguments[0]);
        if self.sockets.len() < MOST || self.sockets.contains_key(&key) {
            self.sockets.entry(key).or_default().add(bytes);
        }
    }

    fn judge(&self, basis: &Basis) -> Option<Found> {
        let is_small =
            |sizes: &&Sizes| basis.rate(sizes.calls) >= LEAST_PER_SECOND && sizes.median_below() <= SMALL;
        let small: Vec<&Sizes> = self.sockets.values().filter(is_small).collect();
        let most = small.iter().max_by_key(|sizes| sizes.calls)?;
        let calls = small.iter().map(|sizes| sizes.calls).sum();
        let took = basis.part(CALLS, calls, self.calls);
        Some(Found {
            measured: vec![
                rate("calls on one socket", basis.rate(most.calls)),
                Measure { what: "mean size", value: most.mean(), unit: "B" },
                percent("these calls", took, basis.cpu_ns),
            ],
            cpu_ns: SPARED * took,
            ..Found::default()
        })
    }
}
