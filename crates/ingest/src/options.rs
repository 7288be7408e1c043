//! What kind of records come, and whose samples are kept.

/// Where records come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// This machine, now: what records leave out may be looked up in /proc.
    Live,
    /// A file, possibly of another machine: files are looked up by build id and path, /proc is not read.
    File,
}

/// Whose samples are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Everyone's: the events themselves are scoped (cgroup, inherited, or the whole machine is wanted).
    All,
    /// Those of these processes and of what they fork.
    Tree(Vec<u32>),
}
