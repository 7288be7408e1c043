//! Demangles the names of a profile's functions.
//!
//! Names are looked up while a program runs and demangled when somebody reads them: demangling takes as long as the
//! look-up, and a recorder has to be cheap.

use std::collections::HashMap;
use std::thread;

use plumb_profile::{Profile, StringId};

use crate::demangle::{demangle, is_mangled};
use crate::work::STACK;

/// Number of names per thread.
const SHARE: usize = 256;

/// Demangles the names of all functions that only have a linkage name so far.
pub fn make_readable(profile: &mut Profile) {
    let mut mangled: Vec<StringId> = Vec::new();
    for function in profile.symbols.functions.rows() {
        let linkage_name = function.linkage_name;
        if function.name == linkage_name && is_mangled(profile.strings.get(linkage_name)) {
            mangled.push(linkage_name);
        }
    }
    mangled.sort_unstable();
    mangled.dedup();
    if mangled.is_empty() {
        return;
    }
    let names: Vec<&str> = mangled.iter().map(|&name| profile.strings.get(name)).collect();
    let readable = all(&names);
    let readable = readable.iter().map(|name| profile.strings.add(name));
    let readable: HashMap<StringId, StringId> =
        mangled.into_iter().zip(readable.collect::<Vec<_>>()).collect();
    profile.symbols.functions.change(|function| {
        if function.name == function.linkage_name
            && let Some(&name) = readable.get(&function.linkage_name)
        {
            function.name = name;
        }
    });
}

/// Returns the readable forms of names, in their order.
pub(crate) fn all(names: &[&str]) -> Vec<String> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(names.len().div_ceil(SHARE));
    let share = names.len().div_ceil(threads.max(1)).max(1);
    let some = |names: &[&str]| names.iter().map(|name| demangle(name)).collect::<Vec<_>>();
    thread::scope(|scope| {
        let start = |names| {
            // Demanglers are recursive.
            let builder = thread::Builder::new().stack_size(STACK);
            (names, builder.spawn_scoped(scope, move || some(names)))
        };
        let started: Vec<_> = names.chunks(share).map(start).collect();
        let joined = started.into_iter().map(|(names, thread)| {
            // If a thread cannot start or fails, its names stay as they are.
            let done = thread.ok().and_then(|thread| thread.join().ok());
            done.unwrap_or_else(|| names.iter().map(|&name| name.to_owned()).collect())
        });
        joined.flatten().collect()
    })
}
