//! Call trees as text. An only child is not indented further than its caller, so that
//! deep stacks stay readable.

use std::collections::BTreeSet;
use std::io::{self, Write};

use plumb_analyze::{Call, Cost, Precision, Tree, TreeNode, View, collapse_templates, shorten};
use plumb_documents::report::TreeKind;

use super::Args;
use super::table::{self, heat};
use crate::render::padding;
use crate::terminal::{Output, printable};

/// Writes the trees.
pub fn write(
    view: &View<'_>,
    trees: &[(TreeKind, Tree)],
    args: &Args,
    out: &mut Output<'_>,
) -> io::Result<()> {
    let min = args.min.unwrap_or(0.5);
    let precision = Precision::of(view);
    for (index, (kind, tree)) in trees.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        let has_own = matches!(kind, TreeKind::TopDown | TreeKind::Callees(_));
        let title = match kind {
            TreeKind::TopDown => "Call, and what it calls".into(),
            TreeKind::BottomUp => "Function, and who calls it".into(),
            TreeKind::Callers(function) => format!("{function}, and who calls it"),
            TreeKind::Callees(function) => format!("{function}, and what it calls"),
        };
        match has_own {
            true => {
                writeln!(out, "# Children      Self  {title}\n# ........  ........  {}\n#", dots(&title))?
            }
            false => writeln!(out, "#    Share  {title}\n# ........  {}\n#", dots(&title))?,
        }
        let (full, paths) = (args.full_names, dso_count(view) > 1);
        Writer { view, tree, has_own, min, precision, full, paths }.write(out)?;
    }
    Ok(())
}

fn dots(title: &str) -> String {
    ".".repeat(title.len())
}

/// Number of files: a single one need not be named.
fn dso_count(view: &View<'_>) -> usize {
    view.frames().map(|(_, frame)| frame.dso).collect::<BTreeSet<_>>().len()
}

/// Up to this many direct recursive calls are all shown.
const FEW_CALLS: usize = 4;

struct Writer<'a, 'p> {
    view: &'a View<'p>,
    tree: &'a Tree,
    has_own: bool,
    min: f64,
    precision: Precision,
    full: bool,
    paths: bool,
}

/// A node still to be written: its prefix, and that of its children.
struct Pending {
    node: usize,
    lead: String,
    below: String,
}

impl Writer<'_, '_> {
    fn write(&self, out: &mut Output<'_>) -> io::Result<()> {
        for &root in &self.tree.roots {
            let mut pending = vec![Pending { node: root, lead: String::new(), below: String::new() }];
            while let Some(next) = pending.pop() {
                self.write_node(next, &mut pending, out)?;
            }
        }
        self.write_cut(out)?;
        self.write_rest(out)
    }

    /// Writes a line with the number of roots beyond the limit.
    fn write_cut(&self, out: &mut Output<'_>) -> io::Result<()> {
        let cut = self.tree.cut;
        if cut.rows == 0 {
            return Ok(());
        }
        let rows = if cut.rows == 1 { "row" } else { "rows" };
        let share = self.precision.percent(cut.own.percent_of(self.view.whole()));
        writeln!(out, "# {} more {rows}, {share} in all: --limit N shows more", cut.rows)
    }

    fn write_node(&self, next: Pending, pending: &mut Vec<Pending>, out: &mut Output<'_>) -> io::Result<()> {
        let node = &self.tree.nodes[next.node];
        let numbers = self.numbers(node.total, node.own);
        let share = node.total.percent_of(self.view.whole());
        let used = padding::width(&numbers) + padding::width(&next.lead);
        let name = self.name(node, out.width.map(|width| width.saturating_sub(used + 1).max(20)));
        writeln!(out, "{}{}{}", out.styled(heat(share), &numbers), next.lead, printable(&name))?;
        if let &[only] = &*node.children {
            let (only, skipped) = self.skip_recursion(next.node, only);
            if skipped > 0 {
                let blank = " ".repeat(padding::width(&numbers));
                writeln!(out, "{blank}{}⋮ {skipped} more calls of itself", next.below)?;
            }
            pending.push(Pending { node: only, lead: next.below.clone(), below: next.below });
            return Ok(());
        }
        for (index, &child) in node.children.iter().enumerate().rev() {
            let last = index + 1 == node.children.len();
            let (corner, line) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            pending.push(Pending {
                node: child,
                lead: format!("{}{corner}", next.below),
                below: format!("{}{line}", next.below),
            });
        }
        Ok(())
    }

    /// For a long direct recursion, returns the last of these calls and the number of skipped ones; otherwise
    /// the next call.
    fn skip_recursion(&self, node: usize, next: usize) -> (usize, usize) {
        let symbol = |node: usize| match self.tree.nodes[node].call {
            Call::Frame { frame, .. } => Some(self.view.frame(frame).symbol),
            Call::Comm(_) => None,
        };
        let mut last = next;
        let mut skipped = 0;
        while let &[only] = &*self.tree.nodes[last].children
            && [last, only].into_iter().all(|call| symbol(call) == symbol(node))
        {
            last = only;
            skipped += 1;
        }
        if skipped >= FEW_CALLS { (last, skipped) } else { (next, 0) }
    }

    fn numbers(&self, total: Cost, own: Cost) -> String {
        let whole = self.view.whole();
        let share = |cost: Cost| self.precision.percent(cost.percent_of(whole));
        match self.has_own {
            true => format!("{:>10} {:>9}  ", share(total), share(own)),
            false => format!("{:>10}  ", share(total)),
        }
    }

    /// Writes one line for the cut branches: no sample is in two of them.
    fn write_rest(&self, out: &mut Output<'_>) -> io::Result<()> {
        let mut rest = self.tree.below;
        for node in &self.tree.nodes {
            rest.rows += node.below.rows;
            rest.own += node.below.own;
        }
        if rest.rows == 0 {
            return Ok(());
        }
        let rows = if rest.rows == 1 { "branch" } else { "branches" };
        let share = self.precision.percent(rest.own.percent_of(self.view.whole()));
        writeln!(out, "# {} {rows} below {}% not shown: {share} together", rest.rows, self.min)
    }

    fn name(&self, node: &TreeNode, width: Option<usize>) -> String {
        let (frame, inlined) = match node.call {
            Call::Comm(thread) => {
                let profile = self.view.profile();
                return profile.strings.get(profile.threads[thread].comm).to_owned();
            }
            Call::Frame { frame, inlined } => (self.view.frame(frame), inlined),
        };
        let path = if self.full { frame.dso_path } else { frame.dso_name() };
        let mut after = String::new();
        if inlined {
            after.push_str(" (inlined)");
        } else if self.paths && !path.is_empty() {
            let brackets = if path.starts_with('[') { ("", "") } else { ("[", "]") };
            after = format!("  {}{path}{}", brackets.0, brackets.1);
        }
        match width.filter(|_| !self.full) {
            Some(width) => {
                let room = width.saturating_sub(padding::width(&after)).max(12);
                format!("{}{after}", shorten(&frame.name, room))
            }
            None if !self.full && padding::width(&frame.name) > table::LONG => {
                format!("{}{after}", collapse_templates(&frame.name))
            }
            None => format!("{}{after}", frame.name),
        }
    }
}
