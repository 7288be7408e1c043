//! Rule: page faults continue after startup.

use super::{
    Basis, CallEvent, CallRule, FaultEvent, Found, Rule, Watch, grouped, in_percent, percent, rate, text,
};

/// Minimum share of CPU time.
const LEAST_SHARE: f64 = 0.05;
/// Minimum number of faults per second after startup.
const LEAST_PER_SECOND: f64 = 1000.0;
/// Length of startup in nanoseconds, but at most half of the observed span.
const START_NS: f64 = 1e9;

/// Name of the rule.
pub(super) const NAME: &str = "page-faults";

pub(in crate::advice) fn rule() -> CallRule {
    let rule = Rule {
        name: NAME,
        claim: "has page faults",
        pattern: "pages are touched for the first time, again and again: memory is taken and given back, or taken without end",
        threshold: text(format!(
            "{} of processor time, or {} faults a second after the first second",
            in_percent(LEAST_SHARE),
            grouped(LEAST_PER_SECOND)
        )),
        remedy: "reuse memory, make fewer and larger allocations, touch it before it matters",
        bound: "the page faults",
        source: "Bakhvalov, Performance Analysis and Tuning on Modern CPUs, 12-4: 100 to 1,000 faults a second should be looked into; \
                 measured: 1.4 to 1.6 us each",
    };
    CallRule { faults: true, ..CallRule::new(rule, &[], || Box::<Faults>::default()) }
}

#[derive(Default)]
struct Faults {
    /// Time of the first fault; below, numbers of faults per tenth of a second since then.
    first_ns: Option<u64>,
    tenths: Vec<u64>,
    all: u64,
}

/// Maximum number of tenths of a second that are counted separately: one day.
const MOST_TENTHS: usize = 864_000;

impl Watch for Faults {
    fn call(&mut self, _call: &CallEvent<'_>) {}

    fn fault(&mut self, fault: &FaultEvent) {
        let first = *self.first_ns.get_or_insert(fault.time_ns);
        let tenth = (fault.time_ns.saturating_sub(first) / 100_000_000) as usize;
        if tenth < MOST_TENTHS {
            self.tenths.resize(self.tenths.len().max(tenth + 1), 0);
            self.tenths[tenth] += 1;
        }
        self.all += 1;
    }

    fn judge(&self, basis: &Basis) -> Option<Found> {
        let start = START_NS.min(basis.span_ns / 2.0);
        let later: u64 = self.tenths.iter().skip((start / 1e8).ceil() as usize).sum();
        let after = (basis.span_ns - start).max(1.0);
        let per_second = later as f64 * 1e9 / after;
        let cpu_ns = basis.faults(self.all, self.all);
        (cpu_ns >= LEAST_SHARE * basis.cpu_ns || per_second >= LEAST_PER_SECOND).then(|| Found {
            measured: vec![
                rate("faults", basis.rate(self.all)),
                rate("faults after the start", per_second),
                percent("all of them", cpu_ns, basis.cpu_ns),
            ],
            cpu_ns,
            ..Found::default()
        })
    }
}
