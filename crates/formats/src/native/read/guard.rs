//! Turns a panic of the parquet crate into an error.
//!
//! Its decoders index and unwrap where a page is malformed in ways that its own checks do not cover (parquet 60).
//! What would take memory without bound is refused before (see `pages.rs`); the rest, which ends in a panic while
//! only the decoder's own state is changed, is caught here.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

static HOOK: Once = Once::new();

/// Runs `decode`; its panics become an error and are not reported on standard error.
pub(super) fn guarded<T>(decode: impl FnOnce() -> T) -> Result<T, String> {
    HOOK.call_once(|| {
        let previous = take_hook();
        set_hook(Box::new(move |info| {
            if !GUARDED.get() {
                previous(info);
            }
        }));
    });
    GUARDED.set(true);
    // What `decode` has changed when it panics is dropped with its result.
    let result = catch_unwind(AssertUnwindSafe(decode));
    GUARDED.set(false);
    result.map_err(|panic| {
        let message = panic.downcast_ref::<String>().map(String::as_str);
        let message = message.or(panic.downcast_ref::<&str>().copied()).unwrap_or("malformed");
        format!("it can't be decoded ({message})")
    })
}
