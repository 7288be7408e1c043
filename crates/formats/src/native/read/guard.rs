//! Turns a panic of the parquet crate into an error.
//!
//! Its decoders index and unwrap where a page is malformed in ways that its own checks do not cover (parquet 60).
//! What would take memory without bound is refused before (see `pages.rs`); the rest, which ends in a panic while
//! only the decoder's own state is changed, is caught here. Not here: a panic hook, which is the program's to install.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic of this thread would become a [`ReadError`](super::ReadError) now: a program's panic hook has nothing
/// to report then.
pub fn panics_become_errors() -> bool {
    GUARDED.get()
}

/// Runs `decode`; its panics become an error.
pub(super) fn guarded<T>(decode: impl FnOnce() -> T) -> Result<T, String> {
    let outer = GUARDED.replace(true);
    // What `decode` has changed when it panics is dropped with its result.
    let result = catch_unwind(AssertUnwindSafe(decode));
    GUARDED.set(outer);
    result.map_err(|panic| {
        let message = panic.downcast_ref::<String>().map(String::as_str);
        let message = message.or(panic.downcast_ref::<&str>().copied()).unwrap_or("malformed");
        format!("it can't be decoded ({message})")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_panics_of_a_decoder_become_errors() {
        assert!(!panics_become_errors());
        assert_eq!(guarded(panics_become_errors), Ok(true));
        let error = guarded(|| assert_eq!(1, 2, "a page ends")).expect_err("it panicked");
        assert!(error.contains("a page ends"), "{error}");
        assert!(!panics_become_errors(), "also after a panic");
    }
}
