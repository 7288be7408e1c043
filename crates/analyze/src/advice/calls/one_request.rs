//! One request in flight: each small message on a socket waits for the answer to the one before.
//!
//! Not here: messages that nobody waits for, and those of one busy socket (`small_messages`).

use rustc_hash::FxHashMap;

use super::sizes::Sizes;
use super::{
    Basis, CallEvent, CallRule, Found, MOST, Measure, Rule, Watch, grouped, part, percent, rate, size,
    small_messages, text,
};

const CALLS: &[&str] = &[
    "read",
    "readv",
    "recvfrom",
    "recvmsg",
    "write",
    "writev",
    "sendto",
    "sendmsg",
    "epoll_wait",
    "epoll_pwait",
    "poll",
];
/// Of these the first receive, the next send, and the others wait.
const RECEIVES: std::ops::Range<usize> = 0..4;
const SENDS: std::ops::Range<usize> = 4..8;
/// Below this many bytes, by the median: of what goes one way, and of what goes the other.
const SMALL: (u64, u64) = (32, 1024);
/// From this many calls a second on all such sockets.
const LEAST_PER_SECOND: f64 = 20_000.0;
/// Share of a socket's calls from which on its calls count as turns: each answers the one before, or is answered by the next.
const ANSWERED: f64 = 0.8;
/// Number of requests assumed to go together.
const TOGETHER: f64 = 16.0;
/// Prefixes of a socket's path, for calls that work on any descriptor.
const SOCKETS: [&str; 4] = ["TCP", "UNIX", "UDP", "socket"];

pub(in crate::advice) fn rule() -> CallRule {
    let rule = Rule {
        name: "one-request-in-flight",
        claim: "handles small requests one at a time, each with its own system calls",
        pattern: "sockets carry small requests and answers in turn: each request waits for the answer to the one before",
        threshold: text(format!(
            "{} calls a second, {} of them in turn, with a median below {} one way and below {} the other",
            grouped(LEAST_PER_SECOND),
            part(ANSWERED),
            size(SMALL.0),
            size(SMALL.1)
        )),
        remedy: "send several requests before waiting for the answers (pipelining, as redis-benchmark -P 16), or make one request of many (MGET, \
                 batch calls)",
        bound: text(format!("these calls and the waits between them, less {}", part(1.0 / TOGETHER))),
        source: "redis.io, Redis pipelining; measured: 14 times as many requests a second with 16 in flight",
    };
    CallRule::new(rule, CALLS, || Box::<Sockets>::default())
}

#[derive(Default)]
struct Socket {
    /// Sizes of the received and of the sent data.
    sizes: [Sizes; 2],
    /// By name.
    calls: [u64; CALLS.len()],
    /// Whether the last call sent.
    sent: bool,
    /// Sends after a receive, or receives after a send.
    turns: u64,
    /// Messages alone, no reads and writes.
    by_message: bool,
}

impl Socket {
    fn add(&mut self, call: usize, bytes: u64) {
        let sends = SENDS.contains(&call);
        let all = self.all();
        self.turns += u64::from(all > 0 && self.sent != sends);
        self.by_message =
            (all == 0 || self.by_message) && !matches!(CALLS[call], "read" | "readv" | "write" | "writev");
        self.sent = sends;
        self.calls[call] += 1;
        self.sizes[usize::from(sends)].add(bytes);
    }

    fn all(&self) -> u64 {
        self.sizes[0].calls + self.sizes[1].calls
    }

    /// Whether it has one small request at a time.
    fn is_one_by_one(&self, basis: &Basis) -> bool {
        let [received, sent] = [&self.sizes[0], &self.sizes[1]].map(Sizes::median_below);
        let is_told = self.by_message && basis.rate(self.all()) >= small_messages::LEAST_PER_SECOND;
        let is_small = received.min(sent) <= SMALL.0 && received.max(sent) <= SMALL.1;
        is_small && self.turns as f64 >= ANSWERED * self.all() as f64 && !is_told
    }
}

#[derive(Default)]
struct Sockets {
    /// All calls by name, those on files included.
    calls: [u64; CALLS.len()],
    sockets: FxHashMap<(u32, u64), Socket>,
}

impl Watch for Sockets {
    fn call(&mut self, call: &CallEvent<'_>) {
        let Some(index) = CALLS.iter().position(|&name| name == call.name) else { return };
        self.calls[index] += 1;
        let moves = RECEIVES.contains(&index) || SENDS.contains(&index);
        let is_socket = match call.path {
            Some(path) => SOCKETS.iter().any(|name| path.starts_with(name)),
            None => call.name.starts_with("recv") || call.name.starts_with("send"),
        };
        let Some(bytes) = u64::try_from(call.result).ok().filter(|&bytes| moves && is_socket && bytes > 0)
        else {
            return;
        };
        let key = (call.pid, call.arguments[0]);
        if self.sockets.len() < MOST || self.sockets.contains_key(&key) {
            self.sockets.entry(key).or_default().add(index, bytes);
        }
    }

    fn judge(&self, basis: &Basis) -> Option<Found> {
        let found: Vec<&Socket> =
            self.sockets.values().filter(|socket| socket.is_one_by_one(basis)).collect();
        let calls: u64 = found.iter().map(|socket| socket.all()).sum();
        if basis.rate_on_cpu(calls) < LEAST_PER_SECOND {
            return None;
        }
        // No more waits than requests belong to these.
        let part = |index: usize| match RECEIVES.contains(&index) || SENDS.contains(&index) {
            true => found.iter().map(|socket| socket.calls[index]).sum(),
            false => self.calls[index].min(calls / 2),
        };
        let took: f64 =
            CALLS.iter().enumerate().map(|(at, &name)| basis.part(&[name], part(at), self.calls[at])).sum();
        let bytes: u64 = found.iter().flat_map(|socket| &socket.sizes).map(|sizes| sizes.bytes).sum();
        Some(Found {
            measured: vec![
                rate("calls in turn", basis.rate(calls)),
                Measure { what: "sockets", value: found.len() as f64, unit: "" },
                Measure { what: "mean size", value: bytes as f64 / calls.max(1) as f64, unit: "B" },
                percent("these calls", took, basis.cpu_ns),
            ],
            cpu_ns: took * (1.0 - 1.0 / TOGETHER),
            ..Found::default()
        })
    }
}
