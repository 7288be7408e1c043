//! Writes samples as lines.

use std::collections::HashMap;
use std::io::{self, Write};

use plumb_profile::{Process, Profile, StackId};

use crate::calls;

/// Writes a line for each sample, in the order of time, below a line of titles.
///
/// `stack` has the frames from the outermost to the innermost with `;` between them, as folded stacks have them. What isn't known is empty.
pub fn write<W: Write>(profile: &Profile, out: W) -> io::Result<()> {
    let mut out = ::csv::Writer::from_writer(out);
    out.write_record(["time_ns", "event", "unit", "weight", "cpu", "pid", "tid", "comm", "stack"])?;
    let mut stacks: HashMap<Option<StackId>, String> = HashMap::new();
    let text = |id| profile.strings.get(id);
    let number = |id: u32| if id == Process::UNKNOWN { String::new() } else { id.to_string() };
    for sample in profile.samples.iter() {
        let thread = &profile.threads[sample.thread];
        let event = &profile.events[sample.event];
        let stack = stacks.entry(sample.stack).or_insert_with(|| stack_text(profile, sample.stack));
        let time = sample.time_ns.saturating_sub(profile.meta.start_ns);
        out.write_record([
            time.to_string().as_str(),
            text(event.name),
            text(event.unit),
            sample.weight.to_string().as_str(),
            sample.cpu.to_string().as_str(),
            number(profile.processes[thread.process].pid).as_str(),
            number(thread.tid).as_str(),
            text(thread.comm),
            stack.as_str(),
        ])?;
    }
    out.flush()
}

fn stack_text(profile: &Profile, stack: Option<StackId>) -> String {
    let calls = calls::of_stack(profile, stack);
    let names: Vec<String> = calls.iter().map(|call| call.name.replace(';', ":")).collect();
    names.join(";")
}
