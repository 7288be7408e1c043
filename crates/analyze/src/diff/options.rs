//! How recordings are compared.

/// What rows are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// Functions.
    #[default]
    Function,
    /// Whole stacks.
    Path,
    /// Lines of functions.
    Line,
    /// System calls, and what else the kernel's time goes into.
    Syscall,
}

/// What makes values of the two sides comparable.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Per {
    /// Nothing: both did the same work.
    #[default]
    Total,
    /// A second of what was sampled: values are shares.
    Second,
    /// So many iterations of the work, in a recording of the base and in one of the new side.
    Iteration([f64; 2]),
}

/// How to compare: by default functions themselves, of recordings of the same work.
#[derive(Clone, Copy, Debug)]
pub struct DiffOptions {
    /// What rows are.
    pub by: By,
    /// Functions cost what they called too.
    pub children: bool,
    /// What values are in.
    pub per: Per,
    /// Of what is found, such a share may be there by chance; intervals hold the truth but for it.
    pub alpha: f64,
}

impl Default for DiffOptions {
    fn default() -> Self {
        Self { by: By::default(), children: false, per: Per::default(), alpha: 0.05 }
    }
}
