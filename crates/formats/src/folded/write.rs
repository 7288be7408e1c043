//! Writes folded stacks in the format of stackcollapse-perf.pl.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use plumb_profile::{DsoKind, Frame, FrameId, FrameKind, Profile, StackId, ThreadId, UnnamedFunctions};

use super::ANNOTATIONS;
use crate::escape::escaped;

/// Options of the output.
#[derive(Clone, Debug)]
pub struct FoldedOptions {
    /// Whether inlined calls are frames of their own.
    pub inlined: bool,
    /// Whether names end in `_[k]` for kernel frames, `_[i]` for inlined calls and `_[j]` for JIT code, by
    /// which flamegraph.pl chooses colours.
    pub annotate: bool,
    /// Whether samples count as one each, instead of by their weight (nanoseconds, events).
    pub samples: bool,
}

impl Default for FoldedOptions {
    fn default() -> Self {
        FoldedOptions { inlined: true, annotate: false, samples: false }
    }
}

/// Writes one line per distinct stack, `comm;outermost;...;innermost count`, sorted by text.
///
/// Characters that split a stack, break its line or control a terminal are escaped (see [`escape`](crate::escape)), and spaces in a thread's name
/// become `_`, as stackcollapse-perf.pl writes it. A truncated stack begins
/// with a frame in brackets that has the reason.
pub fn write<W: Write>(profile: &Profile, options: &FoldedOptions, out: W) -> io::Result<()> {
    let mut counts: BTreeMap<(ThreadId, Option<StackId>), u64> = BTreeMap::new();
    for sample in profile.samples.iter() {
        let count = counts.entry((sample.thread, sample.stack)).or_default();
        *count = count.saturating_add(if options.samples { 1 } else { sample.weight });
    }
    let unnamed = UnnamedFunctions::of(profile);
    let mut names = Names { profile, options, unnamed, of_frame: vec![None; profile.frames.len()] };
    // Stacks that differ only in addresses or threads share a line.
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for ((thread, stack), count) in counts {
        let line = lines.entry(names.line(thread, stack)).or_default();
        *line = line.saturating_add(count);
    }
    let mut out = io::BufWriter::new(out);
    for (line, count) in lines {
        writeln!(out, "{line} {count}")?;
    }
    out.flush()
}

/// Texts of frames, each created once.
struct Names<'a> {
    profile: &'a Profile,
    options: &'a FoldedOptions,
    unnamed: UnnamedFunctions,
    of_frame: Vec<Option<Box<str>>>,
}

impl Names<'_> {
    fn line(&mut self, thread: ThreadId, stack: Option<StackId>) -> String {
        let profile = self.profile;
        let mut frames: Vec<FrameId> = profile.frames_of(stack).collect();
        frames.reverse();
        let mut line = comm(profile.strings.get(profile.threads[thread].comm));
        for id in frames {
            use plumb_profile::Id;
            let text = match self.of_frame[id.index()].take() {
                Some(text) => text,
                None => self.frame(id).into(),
            };
            // In an imported profile the thread's name may be unknown.
            if !line.is_empty() {
                line.push(';');
            }
            line.push_str(&text);
            self.of_frame[id.index()] = Some(text);
        }
        if line.is_empty() { "[no stack recorded]".into() } else { line }
    }

    /// Returns a frame with the calls inlined into it, outermost first.
    fn frame(&self, id: FrameId) -> String {
        let profile = self.profile;
        let frame = &profile.frames[id];
        if let Some(cut) = frame.cut() {
            return format!("[{}]", cut.text());
        }
        let lines = profile.symbols.of(id);
        let suffix = self.suffix(frame);
        if lines.is_empty() {
            let unnamed = self.unnamed.find(profile, id).name(profile);
            return format!("{}{suffix}", name(&unnamed));
        }
        let mut text = String::new();
        for line in lines.iter().rev().filter(|line| self.options.inlined || !line.inlined) {
            if !text.is_empty() {
                text.push(';');
            }
            text.push_str(&name(profile.strings.get(profile.symbols.functions[line.function].name)));
            text.push_str(if line.inlined && self.options.annotate { "_[i]" } else { suffix });
        }
        text
    }

    fn suffix(&self, frame: &Frame) -> &'static str {
        let jit = || {
            let dso = frame.dso.map(|dso| self.profile.dsos[dso].kind);
            matches!(dso, Some(DsoKind::Anonymous { .. }))
        };
        match frame.kind {
            _ if !self.options.annotate => "",
            FrameKind::Kernel => "_[k]",
            FrameKind::User if jit() => "_[j]",
            FrameKind::User | FrameKind::Truncation(_) => "",
        }
    }
}

/// Returns the name of a thread at the start of the line, where `#` would begin a comment.
fn comm(name: &str) -> String {
    let is_special = |at: usize, character| character == ';' || (at == 0 && character == '#');
    escaped(name, is_special).replace(' ', "_")
}

/// Escapes separators of frames and lines, and what would be taken for a suffix. Spaces may stay: only
/// the last one of a line separates.
fn name(name: &str) -> Cow<'_, str> {
    let suffix = ANNOTATIONS.iter().find(|end| name.ends_with(*end)).map(|end| name.len() - end.len());
    escaped(name, |at, character| match character {
        ';' => true,
        '#' => at == 0,
        '_' => suffix == Some(at),
        ' ' => at + 1 == name.len(),
        _ => false,
    })
}
