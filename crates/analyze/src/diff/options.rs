//! The options of a comparison.

/// The kind of row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// Functions.
    #[default]
    Function,
    /// Whole stacks.
    Path,
    /// Lines of functions.
    Line,
    /// System calls, and the kernel's other activities.
    Syscall,
}

/// The normalization that makes values of the two sides comparable.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Per {
    /// None: both did the same work.
    #[default]
    Total,
    /// Per second sampled: values are shares.
    Second,
    /// Per iteration of the work: the number of iterations in a recording of the base and of the new side.
    Iteration([f64; 2]),
}

/// Options of a comparison: by default functions' own costs, in recordings of the same work.
#[derive(Clone, Copy, Debug)]
pub struct DiffOptions {
    /// The kind of row.
    pub by: By,
    /// Functions' costs include their callees.
    pub children: bool,
    /// The normalization of values.
    pub per: Per,
    /// False discovery rate among the marked rows; the confidence level of intervals is one minus this.
    pub alpha: f64,
}

impl Default for DiffOptions {
    fn default() -> Self {
        Self { by: By::default(), children: false, per: Per::default(), alpha: 0.05 }
    }
}
