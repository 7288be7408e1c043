//! Linkage names into names for people.
//!
//! Names come without parameters and return types, as perf shows them: `std::vector<int>::push_back`. Rust names
//! come without their hash. Hostile names can make a demangler recurse or blow its output up, so that both are
//! bounded; what is over the bound is shown as it is.

use std::fmt::{self, Write};

use cpp_demangle::{DemangleOptions, ParseOptions, Symbol};

/// Longest readable name, in bytes. The longest in LibreOffice, Chromium and LLVM have some ten thousand.
const MAX_NAME: usize = 1 << 16;
/// Longest linkage name that is tried.
const MAX_LINKAGE_NAME: usize = 1 << 16;
/// Nested levels while parsing: at most a few hundred bytes of stack each.
const MAX_DEPTH: u32 = 192;

/// The readable form of a linkage name; the name itself if it isn't mangled.
pub(crate) fn demangle(linkage_name: &str) -> String {
    let name = without_version(linkage_name);
    if name.len() > MAX_LINKAGE_NAME {
        return name.to_owned();
    }
    rust(name).or_else(|| cpp(name)).unwrap_or_else(|| name.to_owned())
}

/// A symbol's name without the version that the linker puts behind it (`memcpy@@GLIBC_2.14`).
pub(crate) fn without_version(name: &str) -> &str {
    match name.find('@') {
        Some(at) if at > 0 && !name.ends_with("@plt") => &name[..at],
        _ => name,
    }
}

fn rust(name: &str) -> Option<String> {
    if !(name.starts_with("_R")
        || name.starts_with("_ZN")
        || name.starts_with("__R")
        || name.starts_with("__ZN"))
    {
        return None;
    }
    let demangled = rustc_demangle::try_demangle(name).ok()?;
    let mut out = Bounded(String::new());
    write!(out, "{demangled:#}").ok()?;
    Some(out.0)
}

fn cpp(name: &str) -> Option<String> {
    if !name.starts_with("_Z") && !name.starts_with("_GLOBAL_") {
        return None;
    }
    let parse = ParseOptions::default().recursion_limit(MAX_DEPTH);
    let symbol = Symbol::new_with_options(name, &parse).ok()?;
    let options = DemangleOptions::new().no_params().no_return_type().recursion_limit(MAX_DEPTH);
    let mut out = Bounded(String::new());
    symbol.structured_demangle(&mut out, &options).ok()?;
    Some(out.0)
}

/// A string that refuses to grow beyond [`MAX_NAME`].
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > MAX_NAME {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}
