//! Rules on Python programs: the interpreter's most expensive operations, with the program's lines that cause them.

pub(in crate::advice) mod calls;
pub(in crate::advice) mod exceptions;
pub(in crate::advice) mod gil;
pub(in crate::advice) mod logging;
pub(in crate::advice) mod recursion;
pub(in crate::advice) mod rows;
pub(in crate::advice) mod scan;
pub(in crate::advice) mod slices;
mod source;

pub use source::ScriptSources;
