//! Merges native frames and script frames into one stack.

use crate::{LoopPart, ScriptFrame};

/// A frame of a merged stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merged<'s, N> {
    /// A frame of native code.
    Native(N),
    /// A frame of the interpreted program.
    Script(&'s ScriptFrame),
}

/// Replaces the eval frames, which `is_loop` recognizes, with the script frames of a program, innermost first. Each eval frame is replaced with the
/// script frames up to the next entry frame. If no script frames are left, the remaining eval frames stay as they are; if no eval frames are left,
/// the remaining script frames come last.
pub fn merge<N>(
    native: impl IntoIterator<Item = N>,
    is_loop: impl Fn(&N) -> bool,
    script: &[ScriptFrame],
) -> Vec<Merged<'_, N>> {
    let mut rest = script;
    let mut merged = Vec::new();
    for frame in native {
        if rest.is_empty() || !is_loop(&frame) {
            merged.push(Merged::Native(frame));
            continue;
        }
        let count = rest.iter().position(|frame| frame.is_entry).map_or(rest.len(), |last| last + 1);
        let (round, others) = rest.split_at(count);
        merged.extend(round.iter().map(Merged::Script));
        rest = others;
    }
    merged.extend(rest.iter().map(Merged::Script));
    merged
}

/// The native frames, innermost first, that are eval frames, by the part of the interpreter's loop that each is in: those in the loop, except the
/// innermost if there is one more than `rounds`, as it has no script frame yet, or no longer.
pub fn eval_frames(parts: impl Iterator<Item = Option<LoopPart>>, rounds: usize) -> Vec<bool> {
    let mut before = None;
    let is_round = |part| begins_round(part, std::mem::replace(&mut before, part));
    let mut loops: Vec<bool> = parts.map(is_round).collect();
    if loops.iter().filter(|&&is_loop| is_loop).count() == rounds + 1
        && let Some(innermost) = loops.iter_mut().find(|is_loop| **is_loop)
    {
        *innermost = false;
    }
    loops
}

/// Whether a part of the loop starts an eval frame; `before`: the part that contains the next inner frame.
fn begins_round(part: Option<LoopPart>, before: Option<LoopPart>) -> bool {
    match part {
        Some(LoopPart::Loop) => true,
        Some(LoopPart::Caller) => before != Some(LoopPart::Loop),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_eval_frame_without_a_script_frame_is_the_innermost() {
        let (loop_part, caller) = (Some(LoopPart::Loop), Some(LoopPart::Caller));
        // A native function, called in an eval frame, that is called by the loop's caller, and so in another one.
        let parts = || [None, loop_part, caller, None, caller, None].into_iter();
        assert_eq!(eval_frames(parts(), 2), [false, true, false, false, true, false]);
        assert_eq!(eval_frames(parts(), 1), [false, false, false, false, true, false]);
        assert_eq!(
            eval_frames(parts(), 0),
            [false, true, false, false, true, false],
            "more than one is missing"
        );
    }

    fn frame(function: &str, is_entry: bool) -> ScriptFrame {
        ScriptFrame { function: function.into(), file: String::new(), line: 0, is_entry, at: None }
    }

    fn text(native: &str, script: &[ScriptFrame]) -> String {
        let merged = merge(native.split(' '), |name| *name == "loop", script);
        let name = |frame: &Merged<'_, &str>| match frame {
            Merged::Native(name) => (*name).to_owned(),
            Merged::Script(frame) => frame.function.clone(),
        };
        merged.iter().map(name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn rounds_of_the_loop_become_frames() {
        let script = [frame("f", false), frame("g", true), frame("<lambda>", true), frame("main", true)];
        assert_eq!(
            text("sqrt loop sort loop call loop start", &script),
            "sqrt f g sort <lambda> call main start"
        );
        assert_eq!(
            text("sqrt loop sort loop", &script),
            "sqrt f g sort <lambda> main",
            "a stack that was cut"
        );
        assert_eq!(text("loop a loop b", &script[..2]), "f g a loop b", "a list that was cut");
        assert_eq!(text("loop a", &[]), "loop a");
    }
}
