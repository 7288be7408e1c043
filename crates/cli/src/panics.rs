//! What is said of panics: those that a library turns into errors are said as errors, not twice.

use std::panic::{set_hook, take_hook};

/// Reports no panic of a decoder of recordings, which becomes an error. Others are reported as ever.
pub fn report_all_but_handled() {
    let report = take_hook();
    set_hook(Box::new(move |info| {
        if !plumb_formats::native::panics_become_errors() {
            report(info);
        }
    }));
}
