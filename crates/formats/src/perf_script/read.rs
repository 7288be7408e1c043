//! Reads the text. Invalid lines are left out and counted; other records than samples are left out.

use plumb_profile::{AddressSpace, FrameId, Profile, Sample};

use super::head::{Head, head};
use crate::escape::unescaped;
use crate::foreign::{Assembly, ForeignError, Place};

/// Most bytes of comments and empty lines that the first line of a sample may have before it. `--header` prints some hundred bytes for each BPF
/// program, processor and node of memory.
const MAX_HEADER: usize = 16 << 20;

/// Whether the first line that is neither a comment nor empty is that above a stack, or of another record.
pub(crate) fn is(bytes: &[u8]) -> bool {
    let lines = bytes[..bytes.len().min(MAX_HEADER)].split(|&byte| byte == b'\n');
    let mut lines = lines.filter(|line| !line.starts_with(b"#") && !line.trim_ascii().is_empty());
    lines.next().is_some_and(|line| head(&String::from_utf8_lossy(line)).is_some())
}

/// Reads all samples.
pub(crate) fn read(bytes: &[u8]) -> Result<Profile, ForeignError> {
    let mut reading = Reading {
        assembly: Assembly::new(),
        sample: None,
        is_in_record: false,
        frames: Vec::new(),
        inlined: Vec::new(),
        last: None,
    };
    let mut damaged: Option<(usize, u64)> = None;
    for (at, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
        let line = String::from_utf8_lossy(line);
        if !is_comment(&line) && !reading.line(&line) {
            damaged = Some(damaged.map_or((at + 1, 1), |(first, count)| (first, count + 1)));
        }
    }
    reading.end();
    let meta = &mut reading.assembly.profile.meta;
    meta.warnings.push(
        "imported from what perf script prints, which doesn't tell where files were mapped: addresses are those at run time"
            .into(),
    );
    if let Some((first, count)) = damaged {
        meta.damaged_records = count;
        meta.warnings
            .push(format!("{count} lines, the first of them line {first}, make no sense and are left out"));
    }
    Ok(reading.assembly.finish("perf script"))
}

fn is_comment(line: &str) -> bool {
    line.starts_with('#')
}

/// A frame's line: `address function+offset (file)`.
struct FrameLine<'a> {
    address: u64,
    /// Function name, empty if not known.
    name: &'a str,
    /// File name, empty if not known.
    file: &'a str,
    inlined: bool,
}

struct Reading {
    assembly: Assembly,
    sample: Option<Sample>,
    /// Whether the last line above an indented one was of another record than a sample.
    is_in_record: bool,
    /// Frames of the sample, innermost first.
    frames: Vec<FrameId>,
    /// Names, files and lines of calls inlined into the next frame, innermost first.
    inlined: Vec<(String, String, u32)>,
    /// The last frame, whose source line may follow.
    last: Option<Last>,
}

struct Last {
    address: u64,
    name: String,
    file: String,
    /// Whether the name is the reason of a truncation.
    is_cut: bool,
    source: String,
    line: u32,
}

impl Reading {
    /// Parses a line; returns whether it is valid.
    fn line(&mut self, line: &str) -> bool {
        if line.trim().is_empty() {
            self.end();
            return true;
        }
        // perf puts spaces before a short thread's name, and a tab before a frame.
        let is_frame = line.starts_with('\t') && self.sample.is_some();
        let head = if is_frame { None } else { head(line) };
        if head.is_some() || !line.starts_with([' ', '\t']) || self.sample.is_none() {
            self.end();
            let Some(head) = head else { return self.is_in_record && line.starts_with('\t') };
            self.is_in_record = head.is_record();
            if self.is_in_record {
                return true;
            }
            if self.assembly.weigh(head.period.unwrap_or(1)).is_none() {
                return false;
            }
            self.begin(&head);
            // Without stacks the frame is on the same line.
            if let Some(frame) = frame_line(head.rest) {
                self.frame(&frame);
            }
            return true;
        }
        if let Some(frame) = frame_line(line) {
            self.frame(&frame);
            return true;
        }
        self.source_line(line)
    }

    fn begin(&mut self, head: &Head<'_>) {
        let name = head.event.trim_end_matches(':');
        let plain = name.split(':').next().unwrap_or_default();
        let unit = match plain {
            "cpu-clock" | "task-clock" if head.period.is_some() => "ns",
            "cpu-clock" | "task-clock" | "" => "",
            "cycles" | "ref-cycles" => "cycles",
            // A tracepoint, or an event with modifiers after the colon.
            plain => plain,
        };
        let event = self.assembly.event(&unescaped(name), unit);
        let comm = if head.comm.starts_with(':') { "".into() } else { unescaped(head.comm) };
        let thread = self.assembly.thread(head.pid.or(head.tid), head.tid, &comm, "");
        self.sample = Some(Sample {
            time_ns: head.time_ns.unwrap_or(0),
            thread,
            cpu: head.cpu.unwrap_or(0),
            event,
            stack: None,
            syscall: None,
            weight: head.period.unwrap_or(1),
        });
    }

    fn frame(&mut self, frame: &FrameLine<'_>) {
        self.settle();
        if frame.inlined {
            self.inlined.push((unescaped(frame.name).into_owned(), String::new(), 0));
            return;
        }
        let is_cut = frame.file == "[cut]";
        let (name, file) = (unescaped(frame.name).into_owned(), unescaped(frame.file).into_owned());
        self.last = Some(Last { address: frame.address, name, file, is_cut, source: String::new(), line: 0 });
    }

    /// Parses a source line after the last frame: `file.c:12`.
    fn source_line(&mut self, line: &str) -> bool {
        let Some((file, number)) = line.trim().rsplit_once(':') else { return false };
        let Ok(number) = number.parse() else { return false };
        let file = unescaped(file);
        match (&mut self.last, self.inlined.last_mut()) {
            (Some(last), _) => (last.source, last.line) = (file.into(), number),
            (None, Some(inlined)) => (inlined.1, inlined.2) = (file.into(), number),
            (None, None) => return false,
        }
        true
    }

    /// Adds the last frame, which is complete, with the calls inlined into it.
    fn settle(&mut self) {
        let Some(last) = self.last.take() else { return };
        let inlined = std::mem::take(&mut self.inlined);
        let marker = if last.is_cut { self.assembly.marker(&last.name) } else { None };
        if let Some(marker) = marker {
            self.frames.push(marker);
            return;
        }
        let mut places: Vec<Place<'_>> = inlined
            .iter()
            .map(|(name, file, line)| Place { name, file, line: *line, inlined: true, ..Place::default() })
            .collect();
        if !last.name.is_empty() {
            places.push(Place { name: &last.name, file: &last.source, line: last.line, ..Place::default() });
        }
        let dso = self.assembly.dso(&last.file, None, AddressSpace::Avma, last.address);
        // If plumb knows no address, it prints none.
        let frame = if last.address == 0 && !places.is_empty() {
            let kind = self.assembly.kind_in(dso);
            self.assembly.frame(kind, &last.file, &places)
        } else {
            self.assembly.frame_at(dso, last.address, &places)
        };
        self.frames.push(frame);
    }

    /// Ends the sample.
    fn end(&mut self) {
        self.settle();
        self.inlined.clear();
        if let Some(mut sample) = self.sample.take() {
            sample.stack = self.assembly.profile.add_stack(&self.frames);
            self.assembly.profile.samples.push(sample);
        }
        self.frames.clear();
    }
}

fn frame_line(line: &str) -> Option<FrameLine<'_>> {
    let line = line.trim();
    let (address, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    let address = u64::from_str_radix(address, 16).ok()?;
    let rest = rest.trim();
    let (name, file) = match rest.strip_suffix(')') {
        Some(open) => {
            // A file may be named `x (deleted)`.
            let from =
                if open.ends_with(" (deleted)") { open.len() - " (deleted)".len() } else { open.len() };
            let start = open[..from].rfind(" (").or(open.starts_with('(').then_some(0));
            match start {
                Some(start) => (open[..start].trim_end(), open[start..].trim_start().trim_start_matches('(')),
                None => (rest, ""),
            }
        }
        None => (rest, ""),
    };
    let inlined = file == "inlined";
    let plain = match name.rsplit_once("+0x") {
        Some((plain, offset)) if offset.bytes().all(|byte| byte.is_ascii_hexdigit()) => plain,
        _ => name,
    };
    let known = |text: &str| !matches!(text, "[unknown]" | "[not mapped]" | "[not told]");
    Some(FrameLine {
        address,
        name: if known(plain) { plain } else { "" },
        file: if known(file) && !inlined { file } else { "" },
        inlined,
    })
}
