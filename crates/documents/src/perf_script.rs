//! Every sample as `perf script` prints it, so that tools which read that read plumb.

mod field;
mod place;

use std::io::{self, Write};

use plumb_analyze::{Filter, View, ViewSample};
use plumb_formats::perf_script;
use plumb_profile::{Process, Profile, Thread};

use self::field::Field;
pub use self::field::Fields;
use self::place::Places;
pub use self::place::run_time;
use crate::padding::{right, width};

/// Writes what the filters keep of a profile.
///
/// # Errors
/// `out` fails.
pub fn write(profile: &Profile, fields: Fields, filter: &Filter, out: &mut impl Write) -> io::Result<()> {
    let view = View::new(profile, filter);
    let names =
        profile.events.rows().iter().map(|event| width(&perf_script::event(profile.strings.get(event.name))));
    let writer = Writer { fields, event_width: names.max().unwrap_or(0) };
    let mut places = Places::new(&view, fields);
    for sample in view.samples() {
        let thread = &profile.threads[sample.sample.thread];
        writer.head(profile, thread, &sample, out)?;
        if fields.has_stack() {
            writeln!(out)?;
            let mut next = Some(sample.node);
            while let Some(node) = next {
                let node = view.node(node);
                out.write_all(places.line(thread.process, node.frame).as_bytes())?;
                next = node.caller;
            }
        }
        writeln!(out)?;
    }
    out.flush()
}

struct Writer {
    fields: Fields,
    event_width: usize,
}

impl Writer {
    /// The line above the stack, without its end.
    fn head(
        &self,
        profile: &Profile,
        thread: &Thread,
        sample: &ViewSample,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let Process { pid, .. } = profile.processes[thread.process];
        // As perf prints what it doesn't know.
        let number = |id: u32| if id == Process::UNKNOWN { -1 } else { i64::from(id) };
        let (pid, tid) = (number(pid), number(thread.tid));
        let sample = &sample.sample;
        let has = |field| self.fields.has(field);
        if has(Field::Comm) {
            let comm = match profile.strings.get(thread.comm) {
                // As perf names a thread whose name was not seen. Readers expect a word here.
                "" => format!(":{tid}"),
                comm => perf_script::comm(comm).into_owned(),
            };
            if self.fields.has_stack() {
                write!(out, "{comm} ")?
            } else {
                write!(out, "{} ", right(&comm, 16))?
            }
        }
        match (has(Field::Pid), has(Field::Tid)) {
            (true, true) => write!(out, "{pid:>5}/{tid:<5} ")?,
            (true, false) => write!(out, "{pid:>5} ")?,
            (false, true) => write!(out, "{tid:>5} ")?,
            (false, false) => {}
        }
        if has(Field::Cpu) {
            write!(out, "[{:03}] ", sample.cpu)?;
        }
        if has(Field::Time) {
            let (seconds, rest) = (sample.time_ns / 1_000_000_000, sample.time_ns % 1_000_000_000);
            write!(out, "{seconds:>5}.{:06}: ", rest / 1000)?;
        }
        if has(Field::Period) {
            write!(out, "{:>10} ", sample.weight)?;
        }
        if has(Field::Event) {
            let event = perf_script::event(profile.strings.get(profile.events[sample.event].name));
            write!(out, "{}: ", right(&event, self.event_width))?;
        }
        Ok(())
    }
}
