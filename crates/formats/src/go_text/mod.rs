//! The texts of Go's `runtime/pprof` (`?debug=1`, and `?debug=2` of goroutines), which older tools and people save in place of pprof's message.
//!
//! <https://github.com/golang/go/blob/master/src/runtime/pprof/pprof.go>.

mod read;
mod traces;

pub(crate) use read::{is, read};
