//! Where the frames of a running thread are to be looked for, by the kernel's programs too.

use crate::perl::PerlLayout;
use crate::php::PhpLayout;
use crate::python::PythonLayout;
use crate::ruby::RubyLayout;

/// Where an interpreter keeps what leads to its frames, and how they are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    clippy::large_enum_variant,
    reason = "there is one for each interpreter's file, and it is copied once"
)]
pub enum Root {
    /// As CPython does.
    Python {
        /// Stated address of `_PyRuntime`.
        runtime: u64,
        /// Its structures.
        layout: PythonLayout,
    },
    /// As PHP does.
    Php {
        /// Stated address of `executor_globals`.
        globals: u64,
        /// Its structures.
        layout: PhpLayout,
    },
    /// As Perl does.
    Perl {
        /// Stated address of `PL_curinterp`.
        interpreter: u64,
        /// Its structures.
        layout: PerlLayout,
    },
    /// As Ruby does.
    Ruby {
        /// Stated address of `ruby_single_main_ractor`.
        ractor: u64,
        /// Its structures.
        layout: RubyLayout,
    },
}
