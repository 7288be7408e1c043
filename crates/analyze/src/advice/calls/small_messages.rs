//! Rule: small messages are sent or received with one system call each.

use rustc_hash::FxHashMap;

use super::sizes::Sizes;
use super::{
    Basis, CallEvent, CallRule, Found, MOST, Measure, Rule, Watch, grouped, part, percent, rate, size, text,
};

const CALLS: &[&str] = &["sendto", "sendmsg", "recvfrom", "recvmsg"];
/// Maximum median size, in bytes.
const SMALL: u64 = 1024;
/// Minimum number of calls per second on one socket.
pub(super) const LEAST_PER_SECOND: f64 = 20_000.0;
/// Share of a call's time that batching saves if each message waits for an answer: some messages can be combined.
const SPARED: f64 = 0.5;
/// Bytes of one call that replaces many, and its duration as a multiple of a call for one byte.
const TOGETHER: (f64, f64) = (16384.0, 2.0);
/// Minimum share of a socket's calls that change direction, for messages that wait for answers.
const ANSWERED: f64 = 0.2;

pub(in crate::advice) fn rule() -> CallRule {
    let rule = Rule {
        name: "small-messages",
        claim: "sends small messages, one system call each",
        pattern: "a socket sends or receives small messages, one a call",
        threshold: text(format!(
            "{} calls a second on one socket with a median below {}",
            grouped(LEAST_PER_SECOND),
            size(SMALL)
        )),
        remedy: "sendmmsg and recvmmsg for datagrams, writev or TCP_CORK for streams, UDP_SEGMENT (GSO)",
        bound: text(format!(
            "these calls, less what calls of {} would take; {} of them where each message waits for an answer",
            size(TOGETHER.0 as u64),
            part(SPARED)
        )),
        source: "sendmmsg(2); measured: 1.35 us to send and receive a byte, 2.6 us for 16 KiB",
    };
    CallRule::new(rule, CALLS, || Box::<Sockets>::default())
}

#[derive(Default)]
struct Socket {
    sizes: Sizes,
    /// Whether the last call received.
    receives: bool,
    /// Number of calls in the other direction than the call before.
    turns: u64,
}

impl Socket {
    fn add(&mut self, receives: bool, bytes: u64) {
        self.turns += u64::from(self.sizes.calls > 0 && self.receives != receives);
        self.receives = receives;
        self.sizes.add(bytes);
    }

    /// Returns the share of the time of its calls that batching saves.
    fn spared(&self) -> f64 {
        if self.turns as f64 >= ANSWERED * self.sizes.calls as f64 {
            return SPARED;
        }
        let (bytes, times) = TOGETHER;
        (1.0 - times * self.sizes.mean() / bytes).max(0.0)
    }
}

#[derive(Default)]
struct Sockets {
    calls: u64,
    sockets: FxHashMap<(u32, u64), Socket>,
}

impl Watch for Sockets {
    fn call(&mut self, call: &CallEvent<'_>) {
        self.calls += 1;
        let Ok(bytes) = u64::try_from(call.result) else { return };
        let key = (call.pid, call.arguments[0]);
        if self.sockets.len() < MOST || self.sockets.contains_key(&key) {
            self.sockets.entry(key).or_default().add(call.name.starts_with("recv"), bytes);
        }
    }

    fn judge(&self, basis: &Basis) -> Option<Found> {
        let is_small = |Socket { sizes, .. }: &&Socket| {
            basis.rate(sizes.calls) >= LEAST_PER_SECOND && sizes.median_below() <= SMALL
        };
        let small: Vec<&Socket> = self.sockets.values().filter(is_small).collect();
        let most = small.iter().max_by_key(|socket| socket.sizes.calls)?;
        let calls = small.iter().map(|socket| socket.sizes.calls).sum();
        let took = basis.part(CALLS, calls, self.calls);
        let spared: f64 = small.iter().map(|socket| socket.spared() * socket.sizes.calls as f64).sum();
        Some(Found {
            measured: vec![
                rate("calls on one socket", basis.rate(most.sizes.calls)),
                Measure { what: "mean size", value: most.sizes.mean(), unit: "B" },
                percent("these calls", took, basis.cpu_ns),
            ],
            cpu_ns: took * spared / calls as f64,
            ..Found::default()
        })
    }
}
