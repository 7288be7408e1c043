//! Reads folded stacks, as written by stackcollapse-*.pl, inferno, async-profiler, py-spy and others.
//!
//! The outermost name may be that of a command or of a function, which cannot be distinguished, so it becomes an ordinary frame.

use std::borrow::Cow;

use plumb_profile::{FrameKind, Profile, StackId};

use super::ANNOTATIONS;
use super::evidence::Evidence;
use crate::escape::unescaped;
use crate::foreign::{Assembly, Counted, ForeignError, Place, TOO_LARGE, whole};

/// Whether the first line that is neither a comment nor a stack without frames is a stack.
pub(crate) fn is(bytes: &[u8]) -> bool {
    lines(bytes).find_map(|(_, line)| {
        parts(line).map_or(Some(false), |(stack, _)| (!stack.is_empty()).then_some(true))
    }) == Some(true)
}

/// Reads all lines.
pub(crate) fn read(bytes: &[u8]) -> Result<Profile, ForeignError> {
    let mut assembly = Assembly::new();
    let event = assembly.event("samples", "");
    let thread = assembly.thread(None, None, "", "");
    let mut counted = Vec::new();
    let (mut rounding, mut evidence) = (Rounding::default(), Evidence::default());
    for (number, line) in lines(bytes) {
        let wrong = |message| ForeignError::Line { line: number, message };
        let (stack, count) = parts(line).ok_or_else(|| wrong("there is no count at its end"))?;
        evidence.add(stack, count);
        let count = rounding.round(count).map_err(wrong)?;
        let stack = self::stack(&mut assembly, &String::from_utf8_lossy(stack));
        let count = assembly.weigh(count).ok_or_else(|| wrong(TOO_LARGE))?;
        counted.push(Counted { thread, event, stack, count, weight: count });
    }
    if let Some(looks) = evidence.refusal() {
        return Err(ForeignError::Unknown { looks });
    }
    counted.retain(|one| one.count > 0);
    let warnings = &mut assembly.profile.meta.warnings;
    if rounding.fractions > 0 {
        warnings.push(format!(
            "{} counts have fractions: they are rounded so that the sum stays the same",
            rounding.fractions
        ));
    }
    warnings.push(
        "imported from folded stacks, which tell neither times, threads, processors, addresses and lines, nor what is counted"
            .into(),
    );
    assembly.counted(counted);
    Ok(assembly.finish("folded stacks"))
}

/// Returns lines with their numbers, without empty ones and comments.
fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let lines = bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii_end).enumerate();
    lines.map(|(at, line)| (at + 1, line)).filter(|(_, line)| !line.is_empty() && line[0] != b'#')
}

/// The count of a line.
#[derive(Clone, Copy)]
pub(super) enum Count {
    Whole(u64),
    /// A number with a fraction, or a negative or too large one.
    Number(f64),
}

/// Rounds counts so that their sum stays the same within one: what rounding takes from a count is added to the next.
#[derive(Default)]
struct Rounding {
    /// Between -0.5 and 0.5.
    remainder: f64,
    /// Number of counts with fractions.
    fractions: u64,
}

impl Rounding {
    fn round(&mut self, count: Count) -> Result<u64, &'static str> {
        let value = match count {
            Count::Whole(count) => return Ok(count),
            Count::Number(value) => value,
        };
        let (_, has_fraction) = whole(value)?;
        self.fractions += u64::from(has_fraction);
        let exact = value + self.remainder;
        let count = (exact + 0.5).floor().max(0.0);
        self.remainder = (exact - count).clamp(-0.5, 0.5);
        Ok(whole(count)?.0)
    }
}

/// Splits a line into a stack and its count. The stack may be empty: py-spy writes that for a thread without frames.
pub(super) fn parts(line: &[u8]) -> Option<(&[u8], Count)> {
    let space = line.iter().rposition(|byte| matches!(byte, b' ' | b'\t'))?;
    let count = std::str::from_utf8(&line[space + 1..]).ok()?;
    let digits = count.strip_prefix('-').unwrap_or(count);
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let count = match count.parse::<u64>() {
        Ok(count) => Count::Whole(count),
        Err(_) => Count::Number(count.parse().ok().filter(|_| is_number)?),
    };
    let stack = line[..space].trim_ascii_end();
    Some((stack, count))
}

/// Strips the suffixes of FlameGraph's scripts from a name; returns whether it is kernel code, and whether it is inlined.
fn annotated(name: &str) -> (&str, FrameKind, bool) {
    let end = ANNOTATIONS.into_iter().find(|end| name.ends_with(end)).unwrap_or_default();
    let kind = if end == "_[k]" { FrameKind::Kernel } else { FrameKind::User };
    (&name[..name.len() - end.len()], kind, end == "_[i]")
}

/// The names of a function and of the calls inlined into it; `true` marks an inlined call.
type Names<'t> = Vec<(Cow<'t, str>, bool)>;

fn stack(assembly: &mut Assembly, text: &str) -> Option<StackId> {
    if text.is_empty() {
        return None;
    }
    // Functions with the calls inlined into them, outermost first.
    let mut functions: Vec<(FrameKind, Names<'_>)> = Vec::new();
    let outermost = text.split(';').next().unwrap_or_default();
    for name in text.split(';') {
        let (name, kind, inlined) = annotated(name);
        let name = unescaped(name);
        match functions.last_mut().filter(|_| inlined) {
            Some((_, names)) => names.push((name, inlined)),
            None => functions.push((kind, vec![(name, false)])),
        }
    }
    let mut stack = None;
    for (depth, (kind, names)) in functions.into_iter().enumerate() {
        let places: Vec<Place<'_>> = names
            .iter()
            .rev()
            .map(|(name, inlined)| Place { name, inlined: *inlined, ..Place::default() })
            .collect();
        let marker = if depth == 0 { assembly.marker(outermost) } else { None };
        let frame = marker.unwrap_or_else(|| assembly.frame(kind, "", &places));
        stack = Some(assembly.profile.stacks.add(stack, frame));
    }
    stack
}
