//! Options: the source of records, and the filter for samples.

/// The source of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// This machine, live: missing information may be read from /proc.
    Live,
    /// A file, possibly from another machine: files are found by build ID and path, /proc is not read.
    File,
}

/// The filter for samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// All samples: the events themselves are restricted (cgroup, inherited), or the whole machine is wanted.
    All,
    /// Samples of these processes and their descendants.
    Tree(Vec<u32>),
}
