//! The text formats of Go's `runtime/pprof` (`?debug=1`, and `?debug=2` for goroutines), which older tools and people save instead of
//! pprof's message.
//!
//! <https://github.com/golang/go/blob/master/src/runtime/pprof/pprof.go>.

mod read;
mod traces;

pub(crate) use read::{is, read};
