//! Stacks in documents.

use plumb_analyze::{NodeId, View, ViewFrame};

document! {
    /// A frame.
    pub struct FrameRow as "StackFrame" of (frame: &ViewFrame<'_>) {
        function: String = frame.name.to_string(),
        file: String = frame.dso_path.to_owned(),
    }
}

impl FrameRow {
    /// Returns the frames of a stack, the innermost first.
    pub fn of_stack(view: &View<'_>, node: NodeId) -> Vec<FrameRow> {
        view.stack(node).map(FrameRow::new).collect()
    }
}
