//! Roots from which the frames of a running thread are found, also by the BPF programs.

use crate::perl::PerlLayout;
use crate::php::PhpLayout;
use crate::python::PythonLayout;
use crate::ruby::RubyLayout;

/// Stated address of an interpreter's root structure, and the layout of the structures below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    clippy::large_enum_variant,
    reason = "there is one for each interpreter's file, and it is copied once"
)]
pub enum Root {
    /// CPython.
    Python {
        /// Stated address of `_PyRuntime`.
        runtime: u64,
        /// Offsets of its structures.
        layout: PythonLayout,
    },
    /// PHP.
    Php {
        /// Stated address of `executor_globals`.
        globals: u64,
        /// Offsets of its structures.
        layout: PhpLayout,
    },
    /// Perl.
    Perl {
        /// Stated address of `PL_curinterp`.
        interpreter: u64,
        /// Offsets of its structures.
        layout: PerlLayout,
    },
    /// Ruby.
    Ruby {
        /// Stated address of `ruby_single_main_ractor`.
        ractor: u64,
        /// Offsets of its structures.
        layout: RubyLayout,
    },
}
