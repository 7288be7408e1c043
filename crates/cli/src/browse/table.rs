//! The lines of a view with their shares: computed from a profile view and sorted, not yet filtered by the user's text.

use std::cmp::Reverse;

use plumb_analyze::{
    Call, Filter, Key, Kind, Precision, Report, ReportOptions, RowKey, Tree, TreeOptions, View, ViewFrame,
    rounded_shares,
};

use plumb_profile::{Process, Profile};

use crate::terminal::printable;

use super::state::{Narrow, State, Tab};

/// Branches of trees below this share, in percent, are left out: nobody scrolls that far.
const BRANCHES: TreeOptions = TreeOptions::above(0.1);

/// A line.
#[derive(Clone, Debug, PartialEq)]
pub struct ViewLine {
    /// Identifies the line, independent of its shares.
    pub id: String,
    /// Function, executable, process or thread.
    pub name: String,
    /// The file of a function; the number of processes of an executable.
    pub place: String,
    /// Total share, callees included, in hundredths of a percent.
    pub total: u32,
    /// Self share, in hundredths of a percent.
    pub own: u32,
    /// Indentation steps, in a tree.
    pub indent: usize,
    /// Index of the parent line, in a tree.
    pub parent: Option<usize>,
    /// Number of child lines.
    pub children: usize,
    /// The filter that narrows down to this line.
    pub narrow: Option<Narrow>,
}

/// The lines of a tab.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ViewTable {
    /// The lines in display order.
    pub lines: Vec<ViewLine>,
    /// Number of digits of shares.
    pub precision: Precision,
}

impl ViewTable {
    /// Formats a share given in hundredths of a percent.
    pub fn percent(&self, hundredths: u32) -> String {
        self.precision.percent(f64::from(hundredths) / 100.0)
    }

    /// Computes the lines of a profile for the current state.
    pub fn new(profile: &Profile, state: &State) -> Self {
        // A typed filter was checked when it was entered.
        let filter = &state.filter(profile).unwrap_or_default();
        let view = &View::new(profile, filter);
        match state.tab {
            Tab::Executables => flat(view, filter, &[Key::Exe], false),
            Tab::Processes => flat(view, filter, &[Key::Pid, Key::Exe], false),
            Tab::Threads => flat(view, filter, &[Key::Tid, Key::Comm, Key::Exe], false),
            Tab::Symbols => {
                // Keep all functions even when sorted by self: the user may look for one that only calls others.
                let mut table = flat(view, filter, &[Key::Symbol], true);
                if state.by_self {
                    table.lines.sort_by_key(|line| Reverse((line.own, line.total)));
                }
                table
            }
            Tab::Stacks | Tab::Flame => tree(view, &Tree::top_down(view, BRANCHES)),
            Tab::Callers => {
                let mut table = tree(view, &Tree::bottom_up(view, BRANCHES));
                table.lines.iter_mut().for_each(|line| line.own = line.total);
                table
            }
        }
    }
}

fn flat(view: &View<'_>, filter: &Filter, keys: &[Key], children: bool) -> ViewTable {
    let options = ReportOptions { keys: keys.to_vec(), children, min_percent: 0.0 };
    let report = Report::new(view, filter, &options);
    let parts: Vec<u64> = report.rows.iter().map(|row| row.own.weight).collect();
    // Rounded to the printed precision, so that the figures add up.
    let precision = precision(view);
    let steps = precision.per_percent();
    let shares = rounded_shares(&parts, view.whole().weight, steps);
    let lines = report.rows.iter().zip(shares).map(|(row, own)| {
        let own = own * 100 / steps;
        let total = (row.total.percent_of(view.whole()) * 100.0).round() as u32;
        let (name, place, narrow) = if keys == [Key::Symbol] {
            let frame = view.frame(row.key.frame);
            (symbol(frame, row.inlined), place(frame), narrow_to(frame))
        } else {
            task(view, row.key, keys)
        };
        ViewLine {
            id: format!("{name}\u{1f}{place}"),
            name: printable(&name).into_owned(),
            place: printable(&place).into_owned(),
            total: total.max(own),
            own,
            indent: 0,
            parent: None,
            children: 0,
            narrow,
        }
    });
    ViewTable { lines: lines.collect(), precision }
}

/// Precision for the shown samples; windows of a few seconds carry no more than tenths.
fn precision(view: &View<'_>) -> Precision {
    Precision::of(view).min(Precision::TENTHS)
}

/// Name, place and filter of an executable, a process or a thread.
fn task(view: &View<'_>, key: RowKey, keys: &[Key]) -> (String, String, Option<Narrow>) {
    let exe = key.text(view, Key::Exe).into_owned();
    if keys == [Key::Exe] {
        let short = exe.rsplit('/').next().unwrap_or(&exe).to_owned();
        let narrow = Narrow::Executable(exe.clone());
        return (short, exe, Some(narrow));
    }
    if keys.first() == Some(&Key::Tid) {
        let tid = key.text(view, Key::Tid).into_owned();
        let narrow = tid.parse().ok().map(Narrow::Thread);
        return (format!("{tid:>7} {}", key.text(view, Key::Comm)), exe, narrow);
    }
    let mut pid = key.text(view, Key::Pid).into_owned();
    let narrow = pid.parse().ok().map(Narrow::Process);
    if narrow == Some(Narrow::Process(Process::ENDED)) {
        pid = "ended".into();
    }
    let short = exe.rsplit('/').next().unwrap_or(&exe);
    (format!("{pid:>7} {short}"), exe, narrow)
}

/// A function's name, marked as in reports.
fn symbol(frame: &ViewFrame<'_>, inlined: bool) -> String {
    let mode = match frame.kind {
        Kind::Kernel => "[k]",
        Kind::User => "[.]",
        Kind::Marker => "[-]",
    };
    let inlined = if inlined { " (inlined)" } else { "" };
    format!("{mode} {}{inlined}", frame.name)
}

fn place(frame: &ViewFrame<'_>) -> String {
    frame.dso_name().to_owned()
}

fn narrow_to(frame: &ViewFrame<'_>) -> Option<Narrow> {
    frame.named.then(|| Narrow::Symbol(frame.name.to_string()))
}

fn tree(view: &View<'_>, tree: &Tree) -> ViewTable {
    let mut table = ViewTable { precision: precision(view), ..ViewTable::default() };
    let share = |cost: plumb_analyze::Cost| (cost.percent_of(view.whole()) * 100.0).round() as u32;
    let mut pending: Vec<(usize, Option<usize>, usize)> =
        tree.roots.iter().rev().map(|&root| (root, None, 0)).collect();
    while let Some((node, parent, indent)) = pending.pop() {
        let node = &tree.nodes[node];
        let (name, place, narrow) = match node.call {
            Call::Comm(thread) => {
                let profile = view.profile();
                (profile.strings.get(profile.threads[thread].comm).to_owned(), String::new(), None)
            }
            Call::Frame { frame, inlined } => {
                let frame = view.frame(frame);
                let inlined = if inlined { " (inlined)" } else { "" };
                (format!("{}{inlined}", frame.name), place(frame), narrow_to(frame))
            }
        };
        let above = parent.map_or("", |parent: usize| table.lines[parent].id.as_str());
        let number = table.lines.len();
        table.lines.push(ViewLine {
            id: format!("{above}\u{1e}{name}\u{1f}{place}"),
            name: printable(&name).into_owned(),
            place: printable(&place).into_owned(),
            total: share(node.total),
            own: share(node.own),
            indent,
            parent,
            children: node.children.len(),
            narrow,
        });
        // An only child is not indented, so that deep stacks stay on the screen.
        let indent = if node.children.len() == 1 && parent.is_some() { indent } else { indent + 1 };
        pending.extend(node.children.iter().rev().map(|&child| (child, Some(number), indent)));
    }
    table
}
