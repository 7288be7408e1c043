//! Writes samples as lines.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Write};

use plumb_profile::{Process, Profile, StackId};

use crate::calls::{Call, Calls};
use crate::escape::escaped;

/// The columns.
const HEAD: [&str; 9] = ["time_ns", "event", "unit", "weight", "cpu", "pid", "tid", "comm", "stack"];

/// Whether bytes begin like this format.
pub(crate) fn is(bytes: &[u8]) -> bool {
    bytes.starts_with(HEAD.join(",").as_bytes())
}

/// Writes a header line, then one line per sample, sorted by time.
///
/// `stack` has the frames from the outermost to the innermost separated by `;`, as in folded stacks. Unknown values are empty.
/// Names are [fields](field): characters that control a terminal, split a stack or start a formula are escaped.
pub fn write<W: Write>(profile: &Profile, out: W) -> io::Result<()> {
    let mut out = ::csv::Writer::from_writer(out);
    out.write_record(HEAD).map_err(io_error)?;
    let mut stacks: HashMap<Option<StackId>, String> = HashMap::new();
    let text = |id| profile.strings.get(id);
    let number = |id: u32| if id == Process::UNKNOWN { String::new() } else { id.to_string() };
    let calls = Calls::of(profile);
    for sample in profile.samples.iter() {
        let thread = &profile.threads[sample.thread];
        let event = &profile.events[sample.event];
        let stack = stacks.entry(sample.stack).or_insert_with(|| stack_text(&calls, sample.stack));
        let time = sample.time_ns.saturating_sub(profile.meta.start_ns);
        out.write_record([
            time.to_string().as_str(),
            &field(text(event.name)),
            &field(text(event.unit)),
            sample.weight.to_string().as_str(),
            sample.cpu.to_string().as_str(),
            number(profile.processes[thread.process].pid).as_str(),
            number(thread.tid).as_str(),
            &field(text(thread.comm)),
            stack.as_str(),
        ])
        .map_err(io_error)?;
    }
    out.flush()
}

/// Returns the system's error of a line that could not be written. The conversion of the crate `csv` hides its kind, such as that of a closed pipe.
pub fn io_error(error: ::csv::Error) -> io::Error {
    match error.into_kind() {
        ::csv::ErrorKind::Io(error) => error,
        kind => io::Error::other(format!("{kind:?}")),
    }
}

/// Returns a text as a field of a line. Characters that break the line, control a terminal or start a spreadsheet formula are escaped,
/// see [`escape`](crate::escape); quoting is left to the writer.
pub fn field(text: &str) -> Cow<'_, str> {
    escaped(text, begins_formula)
}

/// Whether spreadsheets interpret a text with this first character as a formula.
fn begins_formula(at: usize, character: char) -> bool {
    at == 0 && matches!(character, '=' | '+' | '-' | '@')
}

fn stack_text(calls: &Calls<'_>, stack: Option<StackId>) -> String {
    let calls = calls.of_stack(stack);
    let name = |(depth, call): (usize, &Call<'_>)| {
        let also = |at, one| one == ';' || (depth == 0 && begins_formula(at, one));
        escaped(&call.name, also).into_owned()
    };
    calls.iter().enumerate().map(name).collect::<Vec<_>>().join(";")
}
