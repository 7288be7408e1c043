//! Writes folded stacks as stackcollapse-perf.pl prints them.

use std::io::{self, Write};

use plumb_profile::Profile;

/// What goes into the lines.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether inlined calls are frames of their own.
    pub inlined: bool,
    /// Whether frames carry `_[k]` (kernel), `_[i]` (inlined) and `_[j]` (JIT) behind their names.
    pub annotate: bool,
    /// Whether samples count by their weight (nanoseconds, events) instead of as one each.
    pub weights: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { inlined: true, annotate: false, weights: false }
    }
}

/// Writes one line a distinct stack, sorted by text.
pub fn write<W: Write>(_profile: &Profile, _options: &Options, _out: W) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
