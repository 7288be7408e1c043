//! Turns a panic of the parquet crate into an error.
//!
//! The decoders index and unwrap if a page is malformed in ways that the crate's own checks do not cover (parquet 60).
//! Unbounded memory use is prevented earlier (see `pages.rs` and `checked.rs`); other panics, which only affect
//! the decoder's own state, are caught here. Does not install a panic hook, which is up to the program.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic of this thread would become an error now: a program's panic hook should not report it.
pub fn panics_become_errors() -> bool {
    GUARDED.get()
}

/// Runs `decode`, which must only change what is dropped with its result, and converts a panic to an error.
///
/// # Errors
/// The message of the panic.
pub fn guarded<T>(decode: impl FnOnce() -> T) -> Result<T, String> {
    let outer = GUARDED.replace(true);
    // The state that `decode` has changed when it panics is dropped with its result.
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
