//! Inclusive costs of function calls, for rules on user code.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use plumb_profile::DsoId;

use super::names::{Names, plain};
use super::python::ScriptSources;
use crate::access::Accesses;
use crate::annotate::SourcePlace;
use crate::cost::Cost;
use crate::cost_tree::{CostTree, TreeBuilder};
use crate::explain::ReadCode;
use crate::frame::{FrameIndex, Kind, SymbolId, ViewFrame};
use crate::loops::{self, CacheSizes, LoopCause, LoopFinding};
use crate::own_code::{FrameCosts, NAMED, OwnCode, SourceLine, is_system, source_line};
use crate::view::{NodeId, View};

/// Minimum share of all time, in percent, for a function whose instructions count.
pub(super) const LEAST_FUNCTION: f64 = 5.0;
/// Minimum part of a file's hot code, and minimum number of functions in it, for the file to be compiled without optimization.
pub(super) const MOST_OF_FILE: f64 = 0.5;
pub(super) const LEAST_FUNCTIONS: u64 = 2;

/// Input of the rules.
pub(in crate::advice) struct Code<'a, 'p> {
    view: &'a View<'p>,
    read: &'a [ReadCode<'a>],
    /// Files that were compiled without optimization.
    unoptimised: HashSet<DsoId>,
    tree: CostTree,
    own: &'a OwnCode,
    /// Cause of the hot loop's time, for each function whose code was read, in the same order.
    loops: Vec<Option<LoopFinding>>,
    /// Source lines of interpreted programs.
    sources: &'a ScriptSources,
    /// Names by function, in the form of [`Names`]; empty for code that is not user code.
    names: Vec<String>,
}

/// Cost of the functions or instructions that a rule concerns.
#[derive(Default)]
pub(in crate::advice) struct Spent {
    pub(super) cost: Cost,
    /// Functions, each with its cost.
    pub(super) functions: Vec<(FrameIndex, Cost)>,
    /// Callers of the functions.
    pub(super) callers: Vec<(FrameIndex, Cost)>,
    /// Cost by innermost function.
    pub(super) own: Vec<(SymbolId, Cost)>,
    /// Frames of the user's own code that call the functions, each with its cost.
    pub(super) places: Vec<(FrameIndex, Cost)>,
    /// Own time of the functions between the user's code and these functions, including the user's.
    pub(super) around: Cost,
    /// Cost of all work in the lines of the user's own code that call the functions.
    pub(super) lines: Cost,
    /// As `lines`, including the user's functions that these lines call.
    pub(super) through: Cost,
    /// Cost of the other lines of the user's own code.
    pub(super) others: Cost,
    /// Cost of the runtime's work elsewhere: collecting what the functions allocate.
    pub(super) elsewhere: Cost,
    /// Findings about loops.
    pub(super) loops: Vec<LoopFinding>,
    /// Line of the user's own code for the loop with the most time.
    pub(super) at: Option<SourcePlace>,
    /// Outermost nodes, each with its inclusive cost.
    begins: Vec<(u32, Cost)>,
    /// For each node of the tree, whether it is included.
    inside: Vec<bool>,
}

impl Spent {
    /// Sets the cost of the runtime's work elsewhere.
    pub(super) fn with_elsewhere(self, elsewhere: Cost) -> Self {
        Self { elsewhere, ..self }
    }

    /// Replaces the places and callers by those of another cost.
    pub(super) fn with_places_of(self, Spent { places, callers, .. }: Spent) -> Self {
        Self { places, callers, ..self }
    }

    /// Returns whether a node is included.
    pub(super) fn has(&self, node: u32) -> bool {
        self.inside.get(node as usize) == Some(&true)
    }

    /// Replaces the cost of the calling lines.
    pub(super) fn with_lines(self, lines: Cost) -> Self {
        Self { lines, ..self }
    }

    /// Returns the outermost nodes, each with its inclusive cost.
    pub(super) fn begins(&self) -> &[(u32, Cost)] {
        &self.begins
    }
}

impl<'a, 'p> Code<'a, 'p> {
    pub(super) fn new(
        view: &'a View<'p>,
        own: &'a OwnCode,
        (read, sources): (&'a [ReadCode<'a>], &'a ScriptSources),
        caches: CacheSizes,
    ) -> Self {
        let costs = view.costs_by(|_| 0);
        let tree = TreeBuilder::new(view).build(view, costs.iter().map(|&(_, node, cost)| (node, cost)));
        let mut names = vec![String::new(); view.symbol_count()];
        for node in tree.nodes() {
            let frame = view.frame(tree.frame(node));
            let name = &mut names[frame.symbol.index()];
            if name.is_empty() && frame.named && frame.kind == Kind::User {
                *name = plain(&frame.name);
            }
        }
        let loops = read.iter().map(|code| loop_of(view, code, caches)).collect();
        Self { view, read, unoptimised: unoptimised(read), tree, own, loops, sources, names }
    }

    pub(super) fn view(&self) -> &'a View<'p> {
        self.view
    }

    pub(super) fn tree(&self) -> &CostTree {
        &self.tree
    }

    pub(super) fn own(&self) -> &'a OwnCode {
        self.own
    }

    pub(super) fn sources(&self) -> &'a ScriptSources {
        self.sources
    }

    /// Returns the functions whose code was read.
    pub(super) fn read(&self) -> &'a [ReadCode<'a>] {
        self.read
    }

    /// Returns the symbol of a function whose code was read.
    pub(super) fn symbol_of(&self, code: &ReadCode<'_>) -> Option<SymbolId> {
        self.frame_of(code).map(|frame| self.view.frame(frame).symbol)
    }

    /// Returns whether a node belongs to the user's own code.
    pub(super) fn is_own(&self, node: u32) -> bool {
        let in_view = self.tree.in_view(node);
        self.own.innermost(in_view) == Some(in_view)
    }

    /// Returns whether a node belongs to an inlined call.
    pub(super) fn is_inlined(&self, node: u32) -> bool {
        self.view.frame(self.tree.frame(node)).inlined
    }

    /// Returns the node, or the node of the function into which it was inlined.
    pub(super) fn real(&self, node: u32) -> u32 {
        let mut at = node;
        while let (true, Some(caller)) = (self.is_inlined(at), self.tree.caller(at)) {
            at = caller;
        }
        at
    }

    /// Returns for each function whether it is one of these. Indexed by symbol, because stacks have many frames of
    /// few functions.
    pub(super) fn named(&self, functions: &Names) -> Vec<bool> {
        self.named_so(|name| functions.has(name))
    }

    /// Returns for each function whether `is_one` holds for its plain name.
    pub(super) fn named_so(&self, is_one: impl Fn(&str) -> bool) -> Vec<bool> {
        self.names.iter().map(|name| !name.is_empty() && is_one(name)).collect()
    }

    /// Returns the cost of calls of these functions. Each sample counts once, for the outermost of them on its stack.
    pub(in crate::advice) fn calls_of(&self, functions: &Names) -> Spent {
        self.calls_named(|name| functions.has(name))
    }

    /// Returns the cost of calls of these functions, if at least the share `least` of it is in the kernel.
    pub(in crate::advice) fn calls_in_kernel(&self, functions: &Names, least: f64) -> Spent {
        let spent = self.calls_of(functions);
        let is_kernel = |node: &u32| self.view.frame(self.tree.frame(*node)).kind == Kind::Kernel;
        let inside = self.tree.nodes().filter(|&node| spent.inside.get(node as usize) == Some(&true));
        let kernel: Cost = inside.filter(is_kernel).map(|node| self.tree.own(node)).sum();
        match kernel.weight as f64 >= least * spent.cost.weight as f64 {
            true => spent,
            false => Spent::default(),
        }
    }

    /// Returns the cost of calls of functions for whose plain name `is_one` holds.
    pub(super) fn calls_named(&self, is_one: impl Fn(&str) -> bool) -> Spent {
        let is_one = self.named_so(is_one);
        if !is_one.contains(&true) {
            return Spent::default();
        }
        self.below(|node| is_one[self.symbol(node).index()])
    }

    /// Returns the cost of hot loops with a cause for which `is_one` holds.
    pub(super) fn loops(&self, is_one: impl Fn(&LoopCause) -> bool) -> Spent {
        self.loops_of(is_one, |_| true)
    }

    fn loops_of(
        &self,
        is_one: impl Fn(&LoopCause) -> bool,
        is_whose: impl Fn(&ReadCode<'_>) -> bool,
    ) -> Spent {
        let mut spent = Spent::default();
        let findings = self.read.iter().zip(&self.loops);
        for (code, finding) in findings.filter(|(code, _)| self.is_meant(code)) {
            let Some(finding) = finding.filter(|finding| is_one(&finding.cause) && is_whose(code)) else {
                continue;
            };
            let samples = code.annotation.own.samples as f64 * code.annotation.share(finding.weight) / 100.0;
            let cost = Cost { weight: finding.weight as u64, samples: samples as u64 };
            spent.cost += cost;
            let is_first = spent.loops.iter().all(|known| known.weight < finding.weight);
            spent.loops.push(finding);
            if is_first {
                let is_users = |place: &&SourcePlace| !place.file.is_empty() && !is_system(&place.file);
                let row = code.annotation.rows.get(finding.instruction);
                spent.at = row.and_then(|row| row.places.iter().find(is_users).cloned());
            }
            self.add_function(&mut spent, code, cost);
        }
        spent.loops.sort_by(|one, other| other.weight.total_cmp(&one.weight));
        spent.functions.sort_by_key(|&(frame, cost)| (Reverse(cost), frame));
        spent.functions.truncate(NAMED);
        spent
    }

    /// Returns the cost of such loops in the user's own functions only: users cannot change the code of a library or
    /// an interpreter.
    pub(super) fn own_loops(&self, is_one: impl Fn(&LoopCause) -> bool) -> Spent {
        let own: HashSet<SymbolId> =
            self.tree.nodes().filter(|&node| self.is_own(node)).map(|node| self.symbol(node)).collect();
        self.loops_of(is_one, |code| self.symbol_of(code).is_some_and(|symbol| own.contains(&symbol)))
    }

    /// Records the cost of a function.
    pub(super) fn add_function(&self, spent: &mut Spent, code: &ReadCode<'_>, cost: Cost) {
        if let Some(frame) = self.frame_of(code) {
            spent.functions.push((frame, cost));
            spent.own.push((self.view.frame(frame).symbol, cost));
        }
    }

    /// Returns whether a function is large enough for its instructions to count. Code without optimization does not
    /// count: it is full of unnecessary instructions.
    pub(super) fn is_meant(&self, code: &ReadCode<'_>) -> bool {
        let is_large = code.function.own.percent_of(self.view.whole()) >= LEAST_FUNCTION;
        is_large && !self.unoptimised.contains(&code.function.dso)
    }

    /// Returns the cost of files that were compiled without optimization.
    pub(super) fn unoptimised_files(&self) -> Spent {
        let is_slow = |dso: Option<DsoId>| dso.is_some_and(|dso| self.unoptimised.contains(&dso));
        let frame = |node| self.view.frame(self.tree.frame(node));
        let own =
            self.tree.nodes().filter(|&node| self.tree.own(node).samples > 0 && is_slow(frame(node).dso));
        let mut spent = Spent::default();
        let (mut sums, mut by_function) = (FrameCosts::default(), HashMap::new());
        for node in own {
            spent.cost += self.tree.own(node);
            sums.add(self.function(node), self.tree.frame(node), self.tree.own(node));
            *by_function.entry(self.symbol(node)).or_default() += self.tree.own(node);
        }
        Spent { functions: sums.first(), own: by_function.into_iter().collect(), ..spent }
    }

    /// Returns a frame of a function whose code was read: of the function itself, not of code inlined into it.
    fn frame_of(&self, code: &ReadCode<'_>) -> Option<FrameIndex> {
        let profile = self.view.profile();
        let is_it = |frame: &ViewFrame<'_>| {
            !frame.inlined && frame.frame.is_some_and(|frame| code.function.has(profile, frame))
        };
        self.view.frames().find(|(_, frame)| is_it(frame)).map(|(index, _)| index)
    }

    /// Returns the cost of calls of these functions, without calls of `others` and of the kernel below them.
    pub(in crate::advice) fn calls_without(&self, functions: &Names, others: &Names) -> Spent {
        let (is_one, is_other) = (self.named(functions), self.named(others));
        let is_kernel = |node| self.view.frame(self.tree.frame(node)).kind == Kind::Kernel;
        self.between(
            |node| is_one[self.symbol(node).index()],
            |node| is_kernel(node) || is_other[self.symbol(node).index()],
        )
    }

    /// Returns the cost below nodes for which `is_one` holds: below the outermost of them on each stack.
    pub(super) fn below(&self, is_one: impl Fn(u32) -> bool) -> Spent {
        self.between(is_one, |_| false)
    }

    /// Returns that cost, without the part below nodes for which `is_out` holds.
    fn between(&self, is_one: impl Fn(u32) -> bool, is_out: impl Fn(u32) -> bool) -> Spent {
        let tree = &self.tree;
        let mut inside: Vec<bool> = Vec::new();
        let mut begins: Vec<u32> = Vec::new();
        for node in tree.nodes() {
            // Callers come before their callees.
            let is_below = tree.caller(node).is_some_and(|caller| inside[caller as usize]) && !is_out(node);
            let is_outermost = !is_below && is_one(node);
            inside.push(is_below || is_outermost);
            if is_outermost {
                begins.push(node);
            }
        }
        if begins.is_empty() {
            return Spent::default();
        }
        let mut totals: Vec<Cost> = tree
            .nodes()
            .map(|node| if inside[node as usize] { tree.own(node) } else { Cost::default() })
            .collect();
        for node in tree.nodes().rev() {
            let total = totals[node as usize];
            let caller = tree.caller(node).filter(|&caller| inside[node as usize] && inside[caller as usize]);
            if let Some(caller) = caller {
                totals[caller as usize] += total;
            }
        }
        self.spent(inside, &begins, &totals)
    }

    /// Sums the cost of these nodes, whose outermost ones are `begins`.
    fn spent(&self, inside: Vec<bool>, begins: &[u32], totals: &[Cost]) -> Spent {
        let tree = &self.tree;
        let (mut functions, mut callers, mut own) =
            (FrameCosts::default(), FrameCosts::default(), HashMap::new());
        let mut places = FrameCosts::default();
        let mut around = Around::default();
        let mut cost = Cost::default();
        for &node in begins {
            let total = totals[node as usize];
            cost += total;
            functions.add(self.function(node), tree.frame(node), total);
            let Some(caller) = tree.caller(node) else { continue };
            callers.add(self.function(caller), tree.frame(caller), total);
            if let Some(user) = self.own.innermost(tree.in_view(caller)) {
                let frame = self.view.node(user).frame;
                places.add(source_line(self.view, frame), frame, total);
                around.add(self, caller, user);
            }
        }
        for node in tree.nodes().filter(|&node| inside[node as usize]) {
            *own.entry(self.symbol(node)).or_default() += tree.own(node);
        }
        let own = own.into_iter().filter(|(_, cost): &(_, Cost)| cost.samples > 0).collect();
        let is_around = |&node: &u32| !inside[node as usize] && around.symbols.contains(&self.symbol(node));
        let around = tree.nodes().filter(is_around).map(|node| tree.own(node)).sum();
        let lines: HashSet<SourceLine<'_>> = places.keys().copied().collect();
        let line = |node: u32| self.own.line(self.view, tree.in_view(node));
        let is_of_line = |&node: &u32| line(node).is_some_and(|line| lines.contains(&line));
        let through = self.through(&lines);
        let lines = tree.nodes().filter(is_of_line).map(|node| tree.own(node)).sum();
        let (functions, callers, places) = (functions.first(), callers.first(), places.first());
        let begins = begins.iter().map(|&node| (node, totals[node as usize])).collect();
        let (elsewhere, loops, at) = (Cost::default(), Vec::new(), None);
        Spent {
            cost,
            functions,
            callers,
            places,
            around,
            lines,
            through,
            others: self.of_own_lines().without(through),
            elsewhere,
            own,
            begins,
            inside,
            loops,
            at,
        }
    }

    /// Returns the key of a function in lists: functions of the same name in one file are shown as one.
    fn function(&self, node: u32) -> (&str, &str) {
        let frame = self.view.frame(self.tree.frame(node));
        (&frame.name, frame.dso_path)
    }

    pub(super) fn symbol(&self, node: u32) -> SymbolId {
        self.view.frame(self.tree.frame(node)).symbol
    }
}

/// Functions between those that a rule concerns and the user's own code, including the latter.
#[derive(Default)]
struct Around {
    symbols: HashSet<SymbolId>,
    met: HashSet<u32>,
}

impl Around {
    /// Adds the functions from a node up to the user's frame above it.
    fn add(&mut self, code: &Code<'_, '_>, node: u32, user: NodeId) {
        let tree = &code.tree;
        let above = |&node: &u32| tree.caller(node).filter(|_| tree.in_view(node) != user);
        // A node that was visited before leads to the same frame.
        for node in std::iter::successors(Some(node), above).take_while(|&node| self.met.insert(node)) {
            self.symbols.insert(code.symbol(node));
        }
    }
}

/// Finds the cause of the time in a function's hot loop.
fn loop_of(view: &View<'_>, code: &ReadCode<'_>, caches: CacheSizes) -> Option<LoopFinding> {
    let event = view.samples().next().map(|first| first.sample.event);
    let listing = &code.annotation.listing;
    let operands = crate::isa::operands(listing.decoded());
    let accesses = Accesses::of(view.profile(), code.function, (listing, &operands), event);
    loops::cause(code.annotation, &operands, &accesses, caches)
}

/// Returns files of which most of the hot code that was read is not optimized, in at least two functions: a single
/// one may be so on purpose.
fn unoptimised(read: &[ReadCode<'_>]) -> HashSet<DsoId> {
    let mut files: HashMap<DsoId, (u64, u64, u64)> = HashMap::new();
    for code in read {
        let (count, slow, all) = files.entry(code.function.dso).or_default();
        let own = code.function.own.weight;
        *all += own;
        if code.annotation.listing.is_unoptimised() {
            *count += 1;
            *slow += own;
        }
    }
    files.retain(|_, &mut (count, slow, all)| {
        count >= LEAST_FUNCTIONS && slow as f64 >= MOST_OF_FILE * all as f64
    });
    files.into_keys().collect()
}
