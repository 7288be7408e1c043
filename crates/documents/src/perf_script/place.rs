//! Lines of stacks: `address function+offset (file)`.

use std::collections::HashMap;
use std::fmt::Write;

use plumb_analyze::{FrameIndex, Kind, View, ViewFrame};
use plumb_formats::perf_script;
use plumb_profile::{DsoId, Mapping, ProcessId};

use super::field::{Field, Fields};

/// The lines of a view's frames. A frame has the same line in all samples of a process, so each is formatted once.
pub(super) struct Places<'v, 'p> {
    view: &'v View<'p>,
    fields: Fields,
    mappings: HashMap<(ProcessId, DsoId), Vec<Mapping>>,
    lines: HashMap<(ProcessId, FrameIndex), String>,
}

impl<'v, 'p> Places<'v, 'p> {
    pub(super) fn new(view: &'v View<'p>, fields: Fields) -> Self {
        let mut mappings: HashMap<_, Vec<Mapping>> = HashMap::new();
        for &mapping in &view.profile().mappings {
            mappings.entry((mapping.process, mapping.dso)).or_default().push(mapping);
        }
        Self { view, fields, mappings, lines: HashMap::new() }
    }

    /// The line of `frame` in the address space of `process`, with its line break.
    pub(super) fn line(&mut self, process: ProcessId, frame: FrameIndex) -> &str {
        let Self { view, fields, mappings, lines } = self;
        lines.entry((process, frame)).or_insert_with(|| {
            let frame = view.frame(frame);
            let ip = match frame.dso.and_then(|dso| mappings.get(&(process, dso))) {
                Some(mappings) => run_time(frame.address.0, mappings),
                None if frame.frame.is_some_and(|id| !view.profile().has_address(id)) => 0,
                None => frame.address.0,
            };
            line(view, *fields, frame, ip)
        })
    }
}

/// The run-time address in the process. A file mapped several times has several biases, of which only
/// one leads back into its own mapping.
pub fn run_time(address: u64, mappings: &[Mapping]) -> u64 {
    let moved = |mapping: &Mapping| address.wrapping_add(mapping.bias);
    // A return address may be one past the end.
    let fits = mappings.iter().find(|mapping| (mapping.start..=mapping.end).contains(&moved(mapping)));
    fits.or(mappings.first()).map_or(address, moved)
}

fn line(view: &View<'_>, fields: Fields, frame: &ViewFrame<'_>, ip: u64) -> String {
    let mut line = String::from("\t");
    if fields.has(Field::Ip) {
        // Writing to a string can't fail.
        let _ = write!(line, "{ip:>16x}");
    }
    if fields.has(Field::Sym) {
        let name = if frame.named || frame.kind == Kind::Marker { &*frame.name } else { "[unknown]" };
        let offset = offset(view, frame).filter(|_| fields.has(Field::SymOff));
        let _ = write!(line, " {}", perf_script::symbol(name, offset.is_some()));
        if let Some(offset) = offset {
            let _ = write!(line, "+{offset:#x}");
        }
    }
    if frame.inlined && fields.has(Field::Sym) {
        line.push_str(" (inlined)");
    } else if fields.has(Field::Dso) {
        let dso = match frame.dso_path {
            "" if frame.kind == Kind::Marker => "[cut]",
            "" => "[not mapped]",
            path => path,
        };
        let _ = write!(line, " ({})", perf_script::file(dso));
    }
    if fields.has(Field::SrcLine) && frame.line > 0 {
        let file = frame.file.rsplit('/').next().unwrap_or(frame.file);
        let _ = write!(line, "\n  {}:{}", perf_script::source(file), frame.line);
    }
    line.push('\n');
    line
}

/// Offset of the address in the outlined function, also for calls inlined into it.
fn offset(view: &View<'_>, frame: &ViewFrame<'_>) -> Option<u64> {
    let symbols = &view.profile().symbols;
    let outlined = symbols.of(frame.frame?).last()?;
    frame.address.0.checked_sub(symbols.functions[outlined.function].start?.0)
}
