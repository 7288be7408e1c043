//! Panic messages: panics that a library turns into errors are not printed a second time.

use std::panic::{set_hook, take_hook};

/// Suppresses messages of panics in recording decoders, which become errors. Other panics are printed as usual.
pub fn report_all_but_handled() {
    let report = take_hook();
    set_hook(Box::new(move |info| {
        if !plumb_formats::native::panics_become_errors() {
            report(info);
        }
    }));
}
