//! Rule: a request sent in several pieces waits for a delayed acknowledgement.
//!
//! Nagle's algorithm holds back the second small piece until the first is acknowledged (RFC 896), and the other side
//! delays the acknowledgement, waiting for data to send along with it: 40 ms on Linux (TCP_DELACK_MIN,
//! include/net/tcp.h).
//!
//! The sign is a thread that sends twice or more on one descriptor and then waits for that time. The other side's
//! work may take the same time by chance, so at least half of the waits after several sends must have this length.
//! Processes that were seen to set TCP_NODELAY do not count.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    Basis, CallEvent, CallRule, Found, MOST, Measure, Rule, Watch, count, part, percent, text, word,
};

const SENDS: [&str; 4] = ["write", "writev", "sendto", "sendmsg"];
const RECEIVES: [&str; 3] = ["read", "recvfrom", "recvmsg"];
const WAITS: &[&str; 9] =
    &["read", "recvfrom", "recvmsg", "poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait"];
const WATCHED: &[&str] = &["write", "writev", "sendto", "sendmsg", "setsockopt"];
/// `IPPROTO_TCP` and `TCP_NODELAY` as arguments of `setsockopt`.
const TCP_NODELAY: (u64, u64) = (6, 1);
/// Duration of a wait for a delayed acknowledgement, in nanoseconds: 40 ms from a timer with a resolution of up to 4
/// ms, some time for the answer, and more on a busy machine.
const DELAYED: std::ops::Range<u64> = 39_000_000..56_000_000;
/// Minimum number of such waits; below, their minimum share of the waits after several sends.
const LEAST_STALLS: u64 = 3;
const LEAST_SHARE: f64 = 0.5;

pub(in crate::advice) fn rule() -> CallRule {
    let rule = Rule {
        name: "delayed-ack",
        claim: "waits 40 ms for each answer to a request that it sends in pieces",
        pattern: "two small sends, then a wait of 40 ms: the second piece is kept back until the first is acknowledged (Nagle's algorithm), which the \
                  other side delays",
        threshold: text(format!(
            "{} such waits, and {} of the waits after several sends",
            word(LEAST_STALLS),
            part(LEAST_SHARE)
        )),
        remedy: "send a request with one call (a buffer, writev, sendmsg), or set TCP_NODELAY on the socket; if it is set, it is the other side that \
                 takes so long",
        bound: "these waits",
        source: "RFC 896, RFC 1122 4.2.3.2; tcp(7): TCP_NODELAY",
    };
    CallRule { also_watched: WATCHED, ..CallRule::new(rule, WAITS, || Box::<Exchanges>::default()) }
}

/// State of a thread.
#[derive(Default)]
struct Thread {
    /// Descriptor of the last send, and the number of sends to it since the last wait.
    sent: Option<(u64, u32)>,
    /// Number of waits after several sends.
    waits: u64,
    stalls: u64,
    stalled_ns: u64,
    /// Index in [`WAITS`] of the call of the last such wait.
    by: usize,
}

impl Thread {
    fn send(&mut self, descriptor: u64) {
        let before = self.sent.filter(|&(last, _)| last == descriptor).map_or(0, |(_, times)| times);
        self.sent = Some((descriptor, before.saturating_add(1)));
    }

    fn wait(&mut self, name: &str, wall_ns: u64) {
        if self.sent.take().is_none_or(|(_, times)| times < 2) {
            return;
        }
        self.waits += 1;
        if DELAYED.contains(&wall_ns) {
            self.stalls += 1;
            self.stalled_ns = self.stalled_ns.saturating_add(wall_ns);
            self.by = WAITS.iter().position(|&wait| wait == name).unwrap_or(0);
        }
    }

    fn is_stalled(&self) -> bool {
        self.stalls >= LEAST_STALLS && self.stalls as f64 >= LEAST_SHARE * self.waits as f64
    }
}

#[derive(Default)]
struct Exchanges {
    /// State by process and thread.
    threads: FxHashMap<(u32, u32), Thread>,
    /// Processes that set TCP_NODELAY.
    without_delay: FxHashSet<u32>,
}

impl Watch for Exchanges {
    fn call(&mut self, call: &CallEvent<'_>) {
        let [descriptor, level, option, ..] = call.arguments;
        if call.name == "setsockopt" {
            if (level, option) == TCP_NODELAY && self.without_delay.len() < MOST {
                self.without_delay.insert(call.pid);
            }
            return;
        }
        let key = (call.pid, call.tid);
        if call.result < 0 || self.threads.len() >= MOST && !self.threads.contains_key(&key) {
            return;
        }
        let thread = self.threads.entry(key).or_default();
        if SENDS.contains(&call.name) {
            thread.send(descriptor);
        } else if !RECEIVES.contains(&call.name) || thread.sent.is_some_and(|(to, _)| to == descriptor) {
            thread.wait(call.name, call.wall_ns);
        }
    }

    fn judge(&self, basis: &Basis) -> Option<Found> {
        let told = self
            .threads
            .iter()
            .filter(|((pid, _), thread)| thread.is_stalled() && !self.without_delay.contains(pid));
        let most = told.map(|(_, thread)| thread).max_by_key(|thread| thread.stalled_ns)?;
        let wall_ns = (most.stalled_ns as f64).min(basis.span_ns);
        Some(Found {
            calls: WAITS.chunks(1).nth(most.by).unwrap_or_default(),
            measured: vec![
                count("waits of 40 ms", most.stalls),
                count("waits after several sends", most.waits),
                Measure {
                    what: "mean",
                    value: most.stalled_ns as f64 / most.stalls as f64 / 1e6,
                    unit: "ms",
                },
                percent("of the elapsed time", wall_ns, basis.span_ns),
            ],
            wall_ns,
            ..Found::default()
        })
    }
}
