//! Rules on programs in Python: what the interpreter does most, and for which line of the program.

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
