//! The report of one event before it is written: its samples, and the table or the trees of them.
//!
//! Not here: options, and any output.

use plumb_analyze::{Filter, Report, Tree, View, WaitSums};

/// What is shown of one event.
pub(super) struct Shown<'p> {
    /// Its samples, by the filter; without idle waits.
    pub view: View<'p>,
    /// Of time that threads were blocked, what they waited for.
    pub waits: Option<WaitSums<'p>>,
    /// The table of idle waits, if there are some and a table is shown.
    pub idle: Option<Report>,
    /// Which samples.
    pub filter: Filter,
    /// What is computed of them.
    pub body: Body,
}

/// A table, or named trees.
pub(super) enum Body {
    Rows(Report),
    Trees(Vec<(TreeKind, Tree)>),
}

/// Which way a tree grows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum TreeKind {
    TopDown,
    BottomUp,
    Callers(String),
    Callees(String),
}
