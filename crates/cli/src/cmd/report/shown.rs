//! The report of one event before it is written: its samples, with their table or trees.
//!
//! Elsewhere: options, and any output.

use plumb_analyze::{Filter, Report, Tree, View, WaitSums};

/// The report of one event.
pub(super) struct Shown<'p> {
    /// The filtered samples, without idle waits.
    pub view: View<'p>,
    /// For blocked time, the sums by reason.
    pub waits: Option<WaitSums<'p>>,
    /// The table of idle waits, if any and if a table is shown.
    pub idle: Option<Report>,
    /// The filter.
    pub filter: Filter,
    /// The table or trees.
    pub body: Body,
}

/// A table, or named trees.
pub(super) enum Body {
    Rows(Report),
    Trees(Vec<(TreeKind, Tree)>),
}

/// The direction of a tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum TreeKind {
    TopDown,
    BottomUp,
    Callers(String),
    Callees(String),
}
