//! Rule: device commands (ioctl) take CPU time.

use rustc_hash::FxHashMap;

use super::{Basis, CallEvent, CallRule, Found, MOST, Rule, Watch, count, in_percent, percent, text};

const CALLS: &[&str] = &["ioctl"];
/// Minimum share of CPU time.
const LEAST_SHARE: f64 = 0.02;
/// `TCGETS`, the command of isatty(3).
const TCGETS: u64 = 0x5401;

pub(in crate::advice) fn rule() -> CallRule {
    let rule = Rule {
        name: "ioctl-cost",
        claim: "makes expensive ioctl calls",
        pattern: "commands to devices take processor time; the one most used is named (TCGETS is isatty, and its ENOTTY harmless)",
        threshold: text(format!("{} of processor time", in_percent(LEAST_SHARE))),
        remedy: "ask once and keep the answer; look at who calls: plumb record -e syscalls:sys_enter_ioctl",
        bound: "ioctl with this command",
        source: "measured: 0.16 us for TCGETS",
    };
    CallRule::new(rule, CALLS, || Box::<Commands>::default())
}

#[derive(Default)]
struct Commands {
    calls: u64,
    commands: FxHashMap<u64, u64>,
}

impl Watch for Commands {
    fn call(&mut self, call: &CallEvent<'_>) {
        self.calls += 1;
        let command = call.arguments[1] & 0xffff_ffff;
        if self.commands.len() < MOST || self.commands.contains_key(&command) {
            *self.commands.entry(command).or_default() += 1;
        }
    }

    fn judge(&self, basis: &Basis) -> Option<Found> {
        let (&command, &calls) = self.commands.iter().max_by_key(|(command, calls)| (**calls, **command))?;
        let cpu_ns = basis.part(CALLS, calls, self.calls);
        (cpu_ns >= LEAST_SHARE * basis.cpu_ns).then(|| Found {
            about: if command == TCGETS { "TCGETS".into() } else { format!("{command:#x}") },
            measured: vec![
                count("calls", calls),
                percent("of all ioctls", calls as f64, self.calls as f64),
                percent("these calls", cpu_ns, basis.cpu_ns),
            ],
            cpu_ns,
            ..Found::default()
        })
    }
}
