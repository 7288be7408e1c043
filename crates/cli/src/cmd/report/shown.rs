//! The report of one event before it is written: its samples, and the table or the trees of them.
//!
//! Not here: options, and any output.

use plumb_analyze::{Filter, Report, Tree, View};

/// What is shown of one event.
pub(super) struct Shown<'p> {
    /// Its samples, by the filter.
    pub view: View<'p>,
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
