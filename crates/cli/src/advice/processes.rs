//! Advice on started processes: which programs, their cost, what to do.
//!
//! Elsewhere: the rules (analyze), advice on single system calls.

use std::io;

use plumb_analyze::{Advice, Filter, Procs, View, advise};
use plumb_documents::advice::ProcessAdviceJson;
use plumb_formats::escape::printable;
use plumb_profile::Profile;

use crate::render::duration::time;
use crate::render::{label, rule};
use crate::terminal::Output;

/// Advice on started processes, most worthwhile first.
pub struct ProcessAdvice(Vec<Advice>);

impl ProcessAdvice {
    /// Applies the rules to these processes.
    pub fn new(procs: &Procs<'_>) -> Self {
        Self(advise(procs))
    }

    /// Writes it for people.
    pub fn write(&self, procs: &Procs<'_>, out: &mut Output<'_>) -> io::Result<()> {
        self.0.iter().try_for_each(|advice| write_one(procs, advice, out))
    }

    /// The advice as JSON, each with the index of the program among the listed ones.
    pub fn json(&self, procs: &Procs<'_>, place: impl Fn(usize) -> Option<usize>) -> Vec<ProcessAdviceJson> {
        let one = |advice: &Advice| ProcessAdviceJson::new(procs, advice, place(advice.program));
        self.0.iter().map(one).collect()
    }
}

/// Writes the advice on a profile's processes. Returns whether there was anything.
pub fn write(profile: &Profile, filter: &Filter, out: &mut Output<'_>) -> io::Result<bool> {
    let view = View::new(profile, filter);
    let procs = Procs::new(&view, filter);
    let advice = ProcessAdvice::new(&procs);
    advice.write(&procs, out)?;
    Ok(!advice.0.is_empty())
}

/// The advice on a profile's processes as JSON.
pub fn json(profile: &Profile, filter: &Filter) -> Vec<ProcessAdviceJson> {
    let view = View::new(profile, filter);
    let procs = Procs::new(&view, filter);
    ProcessAdvice::new(&procs).json(&procs, Some)
}

fn write_one(procs: &Procs<'_>, advice: &Advice, out: &mut Output<'_>) -> io::Result<()> {
    let program = &procs.programs[advice.program];
    let parent = program.parent.map(|parent| &procs.programs[parent]);
    let by = parent.map_or(String::new(), |parent| format!(", started by {}", label::program(parent, false)));
    let title = format!("{}: {}{by}", advice.rule.name, label::program(program, false));
    let bound = amount(procs, advice.bound.weight as f64);
    let gain = format!("{:.1}% of {} ({bound})", advice.bound_percent, printable(weighed(procs)));
    rule::write(&title, advice.rule, &advice.measured, &gain, out)
}

/// The quantity that sample weights represent: CPU time, another time (that of an event such as `off-cpu`), or a number of
/// events.
pub fn weighed<'p>(procs: &Procs<'p>) -> &'p str {
    match procs {
        procs if procs.is_time => "processor time",
        procs if procs.event.is_empty() => "events",
        procs => procs.event,
    }
}

/// A weight with its unit.
pub fn amount(procs: &Procs<'_>, weight: f64) -> String {
    if procs.unit == "ns" { time(weight) } else { format!("{weight:.0}") }
}
