//! What calls of functions took, in them and all that they called.

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
use crate::loops::{self, CacheSizes, LoopCause, LoopFinding, Operands};
use crate::own_code::{FrameCosts, NAMED, OwnCode, SourceLine, is_system, source_line};
use crate::view::{NodeId, View};

/// Instructions count in functions with at least this share of all, in percent.
const LEAST_FUNCTION: f64 = 5.0;

/// What rules look at.
pub(super) struct Code<'a, 'p> {
    view: &'a View<'p>,
    read: &'a [ReadCode<'a>],
    /// Files that were not optimised.
    unoptimised: HashSet<DsoId>,
    tree: CostTree,
    own: &'a OwnCode,
    /// Of the functions whose code was read, in their order, why their hot loops take so long.
    loops: Vec<Option<LoopFinding>>,
    /// What lines of interpreted programs say.
    sources: &'a ScriptSources,
    /// By function, as [`Names`] want it; empty for what is no user code.
    names: Vec<String>,
}

/// What went into what a rule is about.
#[derive(Default)]
pub(super) struct Spent {
    pub(super) cost: Cost,
    /// The functions, and what each took.
    pub(super) functions: Vec<(FrameIndex, Cost)>,
    /// Who called them.
    pub(super) callers: Vec<(FrameIndex, Cost)>,
    /// By innermost function.
    pub(super) own: Vec<(SymbolId, Cost)>,
    /// Frames of the user's own code that called them, and what for each.
    pub(super) places: Vec<(FrameIndex, Cost)>,
    /// Own time of the functions between the user's and these, the user's among them.
    pub(super) around: Cost,
    /// All that was done for the lines of the user's own code that called them.
    pub(super) lines: Cost,
    /// Likewise, with functions of the user that these lines call.
    pub(super) through: Cost,
    /// What is done for other lines of the user's own code.
    pub(super) others: Cost,
    /// What a runtime does for it elsewhere: collecting what it allocates.
    pub(super) elsewhere: Cost,
    /// What its loops show.
    pub(super) loops: Vec<LoopFinding>,
    /// The line of the user's own code that shows it, of the loop with the most time.
    pub(super) at: Option<SourcePlace>,
    /// The nodes at which it begins, and what went through each.
    begins: Vec<(u32, Cost)>,
    /// Per node of the tree whether it is a part of it.
    inside: Vec<bool>,
}

impl Spent {
    /// The same, with what is done for it elsewhere.
    pub(super) fn with_elsewhere(self, elsewhere: Cost) -> Self {
        Self { elsewhere, ..self }
    }

    /// The same, found where another is.
    pub(super) fn with_places_of(self, Spent { places, callers, .. }: Spent) -> Self {
        Self { places, callers, ..self }
    }

    /// Whether a node is a part of it.
    pub(super) fn has(&self, node: u32) -> bool {
        self.inside.get(node as usize) == Some(&true)
    }

    /// The same, with another view of what was done for the lines that call it.
    pub(super) fn with_lines(self, lines: Cost) -> Self {
        Self { lines, ..self }
    }

    /// The nodes at which it begins, and what went through each.
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

    /// The code that was read.
    pub(super) fn read(&self) -> &'a [ReadCode<'a>] {
        self.read
    }

    /// The function whose code was read.
    pub(super) fn symbol_of(&self, code: &ReadCode<'_>) -> Option<SymbolId> {
        self.frame_of(code).map(|frame| self.view.frame(frame).symbol)
    }

    /// Whether a node is of the user's own code.
    pub(super) fn is_own(&self, node: u32) -> bool {
        let in_view = self.tree.in_view(node);
        self.own.innermost(in_view) == Some(in_view)
    }

    /// Whether a node is of a call that was inlined.
    pub(super) fn is_inlined(&self, node: u32) -> bool {
        self.view.frame(self.tree.frame(node)).inlined
    }

    /// The node itself, or that of the function into which it was inlined.
    pub(super) fn real(&self, node: u32) -> u32 {
        let mut at = node;
        while let (true, Some(caller)) = (self.is_inlined(at), self.tree.caller(at)) {
            at = caller;
        }
        at
    }

    /// For each function whether it is one of these; by its number, as stacks have many frames of few functions.
    pub(super) fn named(&self, functions: &Names) -> Vec<bool> {
        self.named_so(|name| functions.has(name))
    }

    /// Likewise, for those whose plain names are such.
    pub(super) fn named_so(&self, is_one: impl Fn(&str) -> bool) -> Vec<bool> {
        self.names.iter().map(|name| !name.is_empty() && is_one(name)).collect()
    }

    /// What went into calls of these functions: each sample once, where the outermost of them is on its stack.
    pub(super) fn calls_of(&self, functions: &Names) -> Spent {
        self.calls_named(|name| functions.has(name))
    }

    /// What went into calls of these functions, if such a part of it was in the kernel at least.
    pub(super) fn calls_in_kernel(&self, functions: &Names, least: f64) -> Spent {
        let spent = self.calls_of(functions);
        let is_kernel = |node: &u32| self.view.frame(self.tree.frame(*node)).kind == Kind::Kernel;
        let inside = self.tree.nodes().filter(|&node| spent.inside.get(node as usize) == Some(&true));
        let kernel: Cost = inside.filter(is_kernel).map(|node| self.tree.own(node)).sum();
        match kernel.weight as f64 >= least * spent.cost.weight as f64 {
            true => spent,
            false => Spent::default(),
        }
    }

    /// What went into calls of functions whose plain names are such.
    pub(super) fn calls_named(&self, is_one: impl Fn(&str) -> bool) -> Spent {
        let is_one = self.named_so(is_one);
        if !is_one.contains(&true) {
            return Spent::default();
        }
        self.below(|node| is_one[self.symbol(node).index()])
    }

    /// What hot loops took for whose cause `is_one` holds.
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

    /// Likewise, of the user's own functions alone: what a library's or an interpreter's code is made of is not his to change.
    pub(super) fn own_loops(&self, is_one: impl Fn(&LoopCause) -> bool) -> Spent {
        let own: HashSet<SymbolId> =
            self.tree.nodes().filter(|&node| self.is_own(node)).map(|node| self.symbol(node)).collect();
        self.loops_of(is_one, |code| self.symbol_of(code).is_some_and(|symbol| own.contains(&symbol)))
    }

    /// Notes what of a function it is.
    pub(super) fn add_function(&self, spent: &mut Spent, code: &ReadCode<'_>, cost: Cost) {
        if let Some(frame) = self.frame_of(code) {
            spent.functions.push((frame, cost));
            spent.own.push((self.view.frame(frame).symbol, cost));
        }
    }

    /// Whether a function is large enough for its instructions to count. What isn't optimised is full of instructions that needn't be there.
    pub(super) fn is_meant(&self, code: &ReadCode<'_>) -> bool {
        let is_large = code.function.own.percent_of(self.view.whole()) >= LEAST_FUNCTION;
        is_large && !self.unoptimised.contains(&code.function.dso)
    }

    /// What the code of files took that were not optimised.
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

    /// A frame of a function whose code was read: of the function itself, not of what was inlined into it.
    fn frame_of(&self, code: &ReadCode<'_>) -> Option<FrameIndex> {
        let profile = self.view.profile();
        let is_it = |frame: &ViewFrame<'_>| {
            !frame.inlined && frame.frame.is_some_and(|frame| code.function.has(profile, frame))
        };
        self.view.frames().find(|(_, frame)| is_it(frame)).map(|(index, _)| index)
    }

    /// What went into calls of these functions but not on into calls of others, or the kernel.
    pub(super) fn calls_without(&self, functions: &Names, others: &Names) -> Spent {
        let (is_one, is_other) = (self.named(functions), self.named(others));
        let is_kernel = |node| self.view.frame(self.tree.frame(node)).kind == Kind::Kernel;
        self.between(
            |node| is_one[self.symbol(node).index()],
            |node| is_kernel(node) || is_other[self.symbol(node).index()],
        )
    }

    /// What went through nodes for which `is_one` holds, the outermost of each stack.
    pub(super) fn below(&self, is_one: impl Fn(u32) -> bool) -> Spent {
        self.between(is_one, |_| false)
    }

    /// Likewise, but for what went on through nodes for which `is_out` holds.
    fn between(&self, is_one: impl Fn(u32) -> bool, is_out: impl Fn(u32) -> bool) -> Spent {
        let tree = &self.tree;
        let mut inside: Vec<bool> = Vec::new();
        let mut begins: Vec<u32> = Vec::new();
        for node in tree.nodes() {
            // Callers come before what they call.
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

    /// What went through these nodes, which begin in `begins`.
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

    /// What makes functions one where they are listed: those of one name in one file are shown without what tells them apart.
    fn function(&self, node: u32) -> (&str, &str) {
        let frame = self.view.frame(self.tree.frame(node));
        (&frame.name, frame.dso_path)
    }

    pub(super) fn symbol(&self, node: u32) -> SymbolId {
        self.view.frame(self.tree.frame(node)).symbol
    }
}

/// The functions between what a rule is about and the user's own code, that among them.
#[derive(Default)]
struct Around {
    symbols: HashSet<SymbolId>,
    met: HashSet<u32>,
}

impl Around {
    /// Adds those from a node up to the user's frame above it.
    fn add(&mut self, code: &Code<'_, '_>, node: u32, user: NodeId) {
        let tree = &code.tree;
        let above = |&node: &u32| tree.caller(node).filter(|_| tree.in_view(node) != user);
        // What was met leads to the same frame.
        for node in std::iter::successors(Some(node), above).take_while(|&node| self.met.insert(node)) {
            self.symbols.insert(code.symbol(node));
        }
    }
}

/// Why a function's hot loop takes so long.
fn loop_of(view: &View<'_>, code: &ReadCode<'_>, caches: CacheSizes) -> Option<LoopFinding> {
    let event = view.samples().next().map(|first| first.sample.event);
    let listing = &code.annotation.listing;
    let operands = Operands::of_all(listing.decoded());
    let accesses = Accesses::of(view.profile(), code.function, (listing, &operands), event);
    loops::cause(code.annotation, &operands, &accesses, caches)
}

/// Files of which most hot code that was read is not optimised, in two functions at least: one alone may be made so.
fn unoptimised(read: &[ReadCode<'_>]) -> HashSet<DsoId> {
    let mut files: HashMap<DsoId, (usize, u64, u64)> = HashMap::new();
    for code in read {
        let (count, slow, all) = files.entry(code.function.dso).or_default();
        let own = code.function.own.weight;
        *all += own;
        if code.annotation.listing.is_unoptimised() {
            *count += 1;
            *slow += own;
        }
    }
    files.retain(|_, (count, slow, all)| *count >= 2 && slow.saturating_mul(2) >= *all);
    files.into_keys().collect()
}
