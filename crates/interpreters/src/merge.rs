//! One stack of native and of interpreted frames.

use crate::ScriptFrame;

/// A frame of a merged stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merged<'s, N> {
    /// Of machine code.
    Native(N),
    /// Of the interpreted program.
    Script(&'s ScriptFrame),
}

/// Puts the frames of a program, innermost first, in the place of those of the interpreter's loop, which `is_loop` tells.
/// Each round of the loop stands for the frames up to the next that native code entered. A round for which there are
/// none left stays what it is; frames for which there is no round come last.
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

#[cfg(test)]
mod tests {
    use super::*;

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
