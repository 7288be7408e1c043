//! Costs of the user's functions in an interpreted program, and of lines in them.
//!
//! Classifying source lines is elsewhere (`python/source.rs`).

use std::collections::{HashMap, HashSet};

use super::names::Names;
use super::spent::{Code, Spent};
use crate::cost::Cost;
use crate::frame::{FrameIndex, SymbolId};
use crate::own_code::{FrameCosts, SourceLine, source_line};
use crate::view::NodeId;

/// Minimum share of the interpreter's own loop in the inclusive cost of a function, for a function that does little.
pub(super) const MOST_OF_LITTLE: f64 = 0.6;
/// Minimum part of a function's inclusive cost in its calls by itself, for a function that repeats by itself.
pub(super) const LEAST_BY_ITSELF: f64 = 0.5;

/// Origin of the repeated calls of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repeats {
    /// The function itself.
    ByItself,
    /// Others.
    ByOthers,
}

/// Costs of a function.
#[derive(Default)]
struct Sums {
    /// The interpreter's own work on the function's instructions.
    inner: Cost,
    /// Inclusive cost.
    through: Cost,
    /// Cost of calls by itself.
    by_itself: Cost,
}

impl Code<'_, '_> {
    /// Returns the cost of interpreted functions in files whose paths end with one of `files`.
    pub(super) fn scripts_in(&self, files: &[&str]) -> Spent {
        self.below(|node| self.is_script_in(node, files))
    }

    /// Returns the cost of calls of these functions, and of interpreted functions in such files.
    pub(in crate::advice) fn calls_and_scripts(&self, functions: &Names, files: &[&str]) -> Spent {
        if files.is_empty() {
            return self.calls_of(functions);
        }
        let is_one = self.named(functions);
        self.below(|node| is_one[self.symbol(node).index()] || self.is_script_in(node, files))
    }

    pub(super) fn is_script_in(&self, node: u32, files: &[&str]) -> bool {
        let frame = self.view().frame(self.tree().frame(node));
        let is_script = frame.frame.is_some_and(|id| self.view().profile().is_script(id));
        is_script && files.iter().any(|end| frame.file.ends_with(end))
    }

    /// Returns the cost of lines of the user's own code for which `is_one` holds, by file and number, including their
    /// callees.
    pub(super) fn script_lines(&self, is_one: impl Fn(&str, u32) -> bool) -> Spent {
        self.at_itself(self.below(|node| self.is_own_line(node, &is_one)))
    }

    /// Returns whether a node belongs to such a line of the user's own code.
    pub(super) fn is_own_line(&self, node: u32, is_one: impl Fn(&str, u32) -> bool) -> bool {
        let frame = self.view().frame(self.tree().frame(node));
        self.is_own_script(node) && is_one(frame.file, frame.line)
    }

    /// Returns the line that calls a node.
    pub(super) fn calling_line(&self, node: u32) -> Option<SourceLine<'_>> {
        self.tree().caller(node).and_then(|caller| self.line(caller))
    }

    /// Returns the lines that call the functions in `spent`.
    pub(super) fn lines_that_call(&self, spent: &Spent) -> HashSet<SourceLine<'_>> {
        spent.begins().iter().filter_map(|&(node, _)| self.calling_line(node)).collect()
    }

    /// Returns the inclusive cost of the lines that call the functions in `spent`.
    pub(super) fn calling_lines(&self, spent: &Spent) -> Spent {
        let lines = self.lines_that_call(spent);
        let is_meant =
            |node: u32| self.is_own_script(node) && self.line(node).is_some_and(|line| lines.contains(&line));
        self.at_itself(self.below(is_meant))
    }

    /// Returns the cost of functions of the program that do little and that other functions of the program call, and
    /// the cost of calling them, which is in the functions `calling`.
    pub(super) fn small_functions(&self, calling: &Names) -> Spent {
        let little = self.little_functions();
        let is_called = |node: u32| {
            let mut callers = self.callers(node);
            self.is_own_script(node)
                && little.get(&self.symbol(node)) == Some(&Repeats::ByOthers)
                && callers.any(|caller| self.is_own_script(caller))
        };
        let calls = self.named(calling);
        self.below(|node| is_called(node) || calls[self.symbol(node).index()] && self.line(node).is_some())
    }

    /// Returns the cost of functions of the program that do little except call themselves.
    pub(super) fn recursive_functions(&self) -> Spent {
        let little = self.little_functions();
        let is_one = |node: u32| {
            self.is_own_script(node) && little.get(&self.symbol(node)) == Some(&Repeats::ByItself)
        };
        self.at_itself(self.below(is_one))
    }

    /// Returns the cost below nodes for which `is_one` holds, located at these nodes and not at their callers.
    pub(super) fn below_itself(&self, is_one: impl Fn(u32) -> bool) -> Spent {
        self.at_itself(self.below(is_one))
    }

    /// Locates a cost at its own lines, not at their callers.
    fn at_itself(&self, mut spent: Spent) -> Spent {
        let mut places = FrameCosts::default();
        for &(node, cost) in spent.begins() {
            let frame = self.tree().frame(node);
            places.add(source_line(self.view(), frame), frame, cost);
        }
        spent.places = places.first();
        spent
    }

    /// Returns the functions of the program that do little: most of their inclusive cost is the interpreter's own
    /// work on their instructions.
    fn little_functions(&self) -> HashMap<SymbolId, Repeats> {
        let mut sums: HashMap<SymbolId, Sums> = HashMap::new();
        for node in self.tree().nodes().filter(|&node| self.tree().own(node).samples > 0) {
            let own = self.tree().own(node);
            let mut met: Vec<SymbolId> = Vec::new();
            let mut again: Vec<SymbolId> = Vec::new();
            let stack = std::iter::once(node).chain(self.callers(node));
            for script in stack.filter(|&one| self.is_own_script(one)).take(MOST_CALLS) {
                let symbol = self.symbol(script);
                let sums = sums.entry(symbol).or_default();
                if !met.contains(&symbol) {
                    sums.inner += if script == node { own } else { Cost::default() };
                    sums.through += own;
                    met.push(symbol);
                } else if !again.contains(&symbol) {
                    sums.by_itself += own;
                    again.push(symbol);
                }
            }
        }
        let is_little = |sums: &Sums| sums.inner.weight as f64 >= MOST_OF_LITTLE * sums.through.weight as f64;
        let little = sums.into_iter().filter(|(_, sums)| is_little(sums));
        let repeats =
            |sums: Sums| match sums.by_itself.weight as f64 >= LEAST_BY_ITSELF * sums.through.weight as f64 {
                true => Repeats::ByItself,
                false => Repeats::ByOthers,
            };
        little.map(|(symbol, sums)| (symbol, repeats(sums))).collect()
    }

    /// Returns the cost of the program's own interpreted functions.
    pub(super) fn own_scripts(&self) -> Spent {
        self.at_itself(self.below(|node| self.is_own_script(node)))
    }

    /// Returns whether a stack contains one of the program's own interpreted functions.
    pub(super) fn is_in_own_script(&self, node: NodeId) -> bool {
        self.own().innermost(node).is_some_and(|own| self.is_script(self.view().node(own).frame))
    }

    /// Returns whether most of the cost begins in the program's own interpreted functions.
    pub(in crate::advice) fn is_for_scripts(&self, spent: &Spent) -> bool {
        let is_in = |node: &u32| self.is_in_own_script(self.tree().in_view(*node));
        let cost: Cost = spent.begins().iter().filter(|(node, _)| is_in(node)).map(|&(_, cost)| cost).sum();
        cost.weight * 2 > spent.cost.weight
    }

    fn is_own_script(&self, node: u32) -> bool {
        self.is_own(node) && self.is_script(self.tree().frame(node))
    }

    fn is_script(&self, frame: FrameIndex) -> bool {
        self.view().frame(frame).frame.is_some_and(|id| self.view().profile().is_script(id))
    }

    fn line(&self, node: u32) -> Option<SourceLine<'_>> {
        self.own().line(self.view(), self.tree().in_view(node))
    }

    fn callers(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.tree().caller(node), |&node| self.tree().caller(node)).take(MOST_FRAMES)
    }
}

/// Maximum number of program functions on a stack that are examined; below, of frames. Frames further out are callers
/// of those.
const MOST_CALLS: usize = 8;
const MOST_FRAMES: usize = 64;
