//! Shared implementation of rules whose only criterion is a rate of calls.

use super::{Basis, CallEvent, Found, Watch, percent, rate};

/// Counter of calls of some kind.
pub(in crate::advice) struct Often {
    /// Calls that the rule concerns.
    calls: &'static [&'static str],
    /// Name of the counted calls.
    what: &'static str,
    is_counted: fn(&CallEvent<'_>) -> bool,
    /// Minimum number of counted calls per second.
    least_per_second: f64,
    /// Share of their CPU time that can be gained, 0 to 1.
    gain: f64,
    all: u64,
    counted: u64,
}

impl Often {
    /// Counts all of `calls`, all of which can be avoided, from `least_per_second` on.
    pub fn new(calls: &'static [&'static str], least_per_second: f64) -> Self {
        Self { calls, what: "calls", is_counted: |_| true, least_per_second, gain: 1.0, all: 0, counted: 0 }
    }

    /// Counts only the calls for which `is_counted` holds, under the name `what`.
    pub fn only(self, what: &'static str, is_counted: fn(&CallEvent<'_>) -> bool) -> Self {
        Self { what, is_counted, ..self }
    }

    /// Sets the share of the CPU time that can be gained.
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
