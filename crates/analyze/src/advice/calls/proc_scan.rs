//! Rule: all processes are scanned frequently.

use super::{Basis, CallEvent, CallRule, Found, Rule, Watch, count, percent, rate, text};

const LISTS: &[&str] = &["getdents64", "getdents"];
/// Minimum number of scans per second.
const LEAST_PER_SECOND: f64 = 10.0;

pub(in crate::advice) fn rule() -> CallRule {
    let rule = Rule {
        name: "process-scan",
        claim: "reads /proc for each process",
        pattern: "/proc is listed again and again to find processes",
        threshold: text(format!("{LEAST_PER_SECOND} times a second")),
        remedy: "look less often, keep the files open, or be told: pidfd, the proc connector (netlink), cgroup.events; a larger buffer does \
                 not help, the cost is in the entries",
        bound: "listing /proc, and what is opened, read and closed below it",
        source: "measured: 47 us for each scan of some 60 processes; buffers of 256 bytes add 9%",
    };
    CallRule::new(rule, &["getdents64", "getdents", "open", "openat", "read", "close"], || {
        Box::<Scans>::default()
    })
}

#[derive(Default)]
struct Scans {
    lists: u64,
    own_lists: u64,
    scans: u64,
    /// Opens, reads and closes: number of all, and number below /proc.
    others: [(u64, u64); 3],
}

impl Watch for Scans {
    fn call(&mut self, call: &CallEvent<'_>) {
        let path = call.path.unwrap_or_default();
        if LISTS.contains(&call.name) {
            self.lists += 1;
            let is_proc = path.trim_end_matches('/') == "/proc";
            self.own_lists += u64::from(is_proc);
            self.scans += u64::from(is_proc && call.result == 0);
            return;
        }
        let kind = match call.name {
            "read" => 1,
            "close" => 2,
            _ => 0,
        };
        self.others[kind].0 += 1;
        self.others[kind].1 += u64::from(path.starts_with("/proc/"));
    }

    fn judge(&self, basis: &Basis) -> Option<Found> {
        if basis.rate(self.scans) < LEAST_PER_SECOND {
            return None;
        }
        let [opens, reads, closes] = self.others;
        let cpu_ns = basis.part(LISTS, self.own_lists, self.lists)
            + basis.part(&["open", "openat"], opens.1, opens.0)
            + basis.part(&["read"], reads.1, reads.0)
            + basis.part(&["close"], closes.1, closes.0);
        Some(Found {
            about: "/proc".into(),
            measured: vec![
                rate("scans", basis.rate(self.scans)),
                count("calls to list it", self.own_lists),
                count("files opened below it", opens.1),
                percent("all of that", cpu_ns, basis.cpu_ns),
            ],
            cpu_ns,
            ..Found::default()
        })
    }
}
