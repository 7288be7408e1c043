//! Assigns the role of the BPF programs for each of a recording's events.

use std::io::ErrorKind;

use plumb_capture_api::{KernelUnwinder, ProbeSpec, SamplingRate};

use crate::attr::{Copier, Part, Sampling};
use crate::error::Error;
use crate::events::{Attachment, EventContext, Program};
use crate::sys::perf::{Event, Whom};

/// The number that a program has for the event at a place in the list, in which a measurement comes last, whose events have the first numbers.
pub(super) fn number_of(place: usize, events_of_measure: usize) -> usize {
    place + events_of_measure
}

/// Sets up the unwinder for each event; a message is added to `limits` for each event that it can't handle. Events whose samples it takes itself
/// become copiers. `limit_hz`: samples per second of an event that is sampled each time and turns out to
/// be frequent.
pub(super) fn assign(
    wanted: &mut [Sampling],
    unwinder: &mut dyn KernelUnwinder,
    context: &EventContext,
    limit_hz: Option<u32>,
    limits: &mut Vec<String>,
) -> Result<Vec<Program>, Error> {
    let decided =
        wanted.iter().filter(|one| !one.counter.is_place() && !one.is_copied && !one.is_measure()).count();
    let interrupts = wanted.iter().position(|one| one.counter.interrupts()).filter(|_| decided > 1);
    let events_of_measure = unwinder.measure().map_or(0, |measure| measure.events().len());
    let only_measures = events_of_measure > 0 && unwinder.program().is_none();
    let mut programs = Vec::new();
    for (place, sampling) in wanted.iter_mut().enumerate() {
        let number = number_of(place, events_of_measure);
        let program = if sampling.is_measure() {
            let measure = unwinder
                .measure()
                .ok_or_else(|| Error::system("measuring")(ErrorKind::Unsupported.into()))?;
            let copiers = measure.copiers().map_err(Error::system("reading a map of events"))?;
            Ok(Program::Takes { copiers, event: None })
        } else if sampling.is_copied || only_measures {
            Ok(Program::Absent)
        } else if sampling.counter.is_place() {
            watch(number, sampling, unwinder, context, limit_hz)
        } else if interrupts.is_none_or(|first| first == place) {
            let program = unwinder.program().map(|program| program.try_clone_to_owned()).transpose();
            let program = program.map_err(Error::system("keeping a program"))?;
            program.map(|program| Program::Decides(program, number)).ok_or("there is no program".into())
        } else {
            Err("a clock interrupts what walks them, and would lose samples".into())
        };
        programs.push(program.unwrap_or_else(|why: String| {
            let name = sampling.counter.name();
            limits.push(format!("stacks of {name} are copied, not walked in the kernel: {why}"));
            Program::Absent
        }));
    }
    let has_said = wanted.iter().any(|one| one.copier.is_some());
    // All events need the same layout. Copied stacks begin later.
    let first = programs.iter().position(|program| !matches!(program, Program::Absent)).unwrap_or(0);
    for (number, one) in wanted.iter_mut().enumerate() {
        one.part = Part { has_said, tells: number == first, ..one.part };
    }
    Ok(programs)
}

/// Lets an unwinder observe a probe.
fn watch(
    number: usize,
    sampling: &mut Sampling,
    unwinder: &mut dyn KernelUnwinder,
    context: &EventContext,
    limit_hz: Option<u32>,
) -> Result<Program, String> {
    let trigger = sampling.counter.trigger().filter(|_| sampling.counter.is_watchable(sampling.code));
    let trigger = trigger.ok_or("only part of the code is asked for")?;
    let is_scoped = match context.attachment {
        Attachment::Cgroup(_) => true,
        Attachment::Everyone => false,
        Attachment::Processes(_) => return Err("events are inherited from thread to thread".into()),
    };
    let tracepoint = trigger.tracepoint();
    let limit_hz = limit_hz.filter(|_| sampling.pace == SamplingRate::Period(1));
    let watched = ProbeSpec { number, tracepoint, pace: sampling.pace, limit_hz, is_scoped };
    let copiers = unwinder.watch(&watched).map_err(|error| error.to_string())?;
    let event = match tracepoint {
        Some(_) => None,
        None => Some(open(number, sampling, unwinder, context).map_err(|error| error.to_string())?),
    };
    let way_in = copiers.way_in.as_deref().map(Into::into);
    sampling.copier = Some(Copier { way_in, is_scope: is_scoped });
    Ok(Program::Takes { copiers, event })
}

/// Opens the event of a function: one for all CPUs, as its program runs wherever the function is called.
fn open(
    number: usize,
    sampling: &Sampling,
    unwinder: &dyn KernelUnwinder,
    context: &EventContext,
) -> std::io::Result<Event> {
    let cpu = context.rings.cpus().next().unwrap_or(0);
    let attr = Sampling { part: Part { tells: false, ..sampling.part }, ..sampling.clone() }.attr();
    let mut event = Event::open(&attr, Whom::Everyone, cpu)?;
    let program = unwinder.at_function().ok_or(ErrorKind::Unsupported)?;
    event.attach_as(program, number as u64)?;
    Ok(event)
}
