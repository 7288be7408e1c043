//! Rules on Python programs: the interpreter's most expensive operations, with the program's lines that cause them.

pub(super) mod attributes;
pub(super) mod calls;
pub(super) mod collector;
pub(super) mod concatenation;
pub(super) mod deepcopy;
pub(super) mod elements;
pub(super) mod exceptions;
pub(super) mod gil;
pub(super) mod imports;
pub(super) mod list_front;
pub(super) mod logging;
pub(super) mod membership;
pub(super) mod parsing;
pub(super) mod recursion;
pub(super) mod rows;
pub(super) mod scan;
pub(super) mod slices;
mod source;

pub use source::ScriptSources;
