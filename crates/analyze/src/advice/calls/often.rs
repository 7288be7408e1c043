//! Calls that are a habit where so many of them come in each second: what the rules share that go by nothing else.

use super::{Basis, CallEvent, Found, Watch, percent, rate};

/// Calls of some kind, counted.
pub(super) struct Often {
    /// The calls that the rule is about.
    calls: &'static [&'static str],
    /// What it counts of them.
    what: &'static str,
    is_counted: fn(&CallEvent<'_>) -> bool,
    /// From this many a second.
    least_per_second: f64,
    /// What of their processor time could be gained, 0 to 1.
    gain: f64,
    all: u64,
    counted: u64,
}

impl Often {
    /// All of `calls`, which could all be spared, from so many a second.
    pub fn new(calls: &'static [&'static str], least_per_second: f64) -> Self {
        Self { calls, what: "calls", is_counted: |_| true, least_per_second, gain: 1.0, all: 0, counted: 0 }
    }

    /// Those for which `is_counted`, as `what`.
    pub fn only(self, what: &'static str, is_counted: fn(&CallEvent<'_>) -> bool) -> Self {
        Self { what, is_counted, ..self }
    }

    /// Of which so much could be spared.
    pub fn gain(self, gain: f64) -> Self {
        Self { gain, ..self }
    }
}

impl Watch for Often {
    fn call(&mut self, call: &CallEvent<'_>) {
        self.all += 1;
        self.counted += u64::from((self.is_counted)(call));
    }

    fn judge(&self, basis: &Basis) -> Option<Found> {
        let cpu_ns = self.gain * basis.part(self.calls, self.counted, self.all);
        let per_second = basis.rate(self.counted);
        (per_second >= self.least_per_second).then(|| Found {
            measured: vec![rate(self.what, per_second), percent("these calls", cpu_ns, basis.cpu_ns)],
            cpu_ns,
            ..Found::default()
        })
    }
}
