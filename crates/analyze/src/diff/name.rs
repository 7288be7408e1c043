//! Folds function and module names so that they match across builds.
//!
//! Compilers append the kind of a copy to a function's name (`.constprop.0`, `.cold`), Rust a hash; a library has its version after its
//! file's name. None of these identifies the function.

/// Suffixes that GCC and LLVM append, after a dot, to copies and parts of a function.
const COPIES: [&str; 9] =
    ["constprop", "isra", "part", "cold", "llvm", "lto_priv", "localalias", "clone", "__uniq"];

/// Returns the name without what distinguishes copies of a function, or its builds.
pub(super) fn folded(name: &str) -> String {
    let mut name = name;
    while let Some(shorter) = without_copy(name).or_else(|| without_hash(name)) {
        name = shorter;
    }
    without_crate_hashes(name)
}

/// Strips one copy suffix, if there is one: `f.isra.0`, `f.cold`, `f() [clone .part.1]` and `f() (.llvm.123)` are copies of f.
fn without_copy(name: &str) -> Option<&str> {
    for (open, close) in [(" [clone .", ']'), (" (.", ')')] {
        if let Some((plain, copy)) = name.strip_suffix(close).and_then(|name| name.rsplit_once(open))
            && COPIES.contains(&copy.split('.').next().unwrap_or(copy))
        {
            return Some(plain);
        }
    }
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let stem = name.rsplit_once('.').filter(|(_, end)| is_number(end)).map_or(name, |(stem, _)| stem);
    let (plain, copy) = stem.rsplit_once('.')?;
    (COPIES.contains(&copy) && !plain.is_empty()).then_some(plain)
}

/// Strips the hash of Rust's legacy mangling: `f::h0123456789abcdef` is f.
fn without_hash(name: &str) -> Option<&str> {
    let (plain, hash) = name.rsplit_once("::h")?;
    (hash.len() == 16 && is_hexadecimal(hash)).then_some(plain)
}

/// Strips crate hashes of Rust's v0 mangling: `core[0123456789abcdef]::fmt` is `core::fmt`.
fn without_crate_hashes(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('[') {
        out.push_str(before);
        match after.split_once(']') {
            Some((hash, behind)) if (8..=16).contains(&hash.len()) && is_hexadecimal(hash) => rest = behind,
            _ => {
                out.push('[');
                rest = after;
            }
        }
    }
    out + rest
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// Whether a file is a library, judging by its name.
pub(super) fn is_library(path: &str) -> bool {
    last_part(path).contains(".so")
}

/// Returns a file's name without its directory, a library's version and the hash that cargo appends to a program's name.
pub(super) fn module(path: &str) -> &str {
    let name = last_part(path);
    match name.split_once(".so") {
        // libc-2.31.so became libc.so.6.
        Some((stem, _)) => match stem.rsplit_once('-') {
            Some((plain, version)) if version.starts_with(|c: char| c.is_ascii_digit()) => plain,
            _ => stem,
        },
        None => match name.rsplit_once('-') {
            Some((plain, hash)) if hash.len() == 16 && is_hexadecimal(hash) => plain,
            _ => name,
        },
    }
}

/// Returns the part after the last slash.
pub(super) fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_and_builds_of_a_function_are_one() {
        for (name, plain) in [
            ("parse", "parse"),
            ("parse.constprop.0", "parse"),
            ("parse.isra.0.cold", "parse"),
            ("parse.part.12", "parse"),
            ("parse.llvm.1234567890123456789", "parse"),
            ("parse.__uniq.77.llvm.5", "parse"),
            ("A::parse() [clone .isra.0] [clone .cold]", "A::parse()"),
            ("A::parse() (.llvm.42)", "A::parse()"),
            ("app::parse::h0123456789abcdef", "app::parse"),
            ("core[8f3bc11e2a90d3c4]::fmt::write", "core::fmt::write"),
            ("<app[00ff00ff00ff00ff]::T as core[1122334455667788]::X>::f", "<app::T as core::X>::f"),
            // Not copies.
            ("main.main.func1.2", "main.main.func1.2"),
            ("a[i]", "a[i]"),
            ("[stack deeper than its copy]", "[stack deeper than its copy]"),
            ("operator[]", "operator[]"),
            ("f::hash", "f::hash"),
            (".cold", ".cold"),
        ] {
            assert_eq!(folded(name), plain, "{name}");
        }
    }

    #[test]
    fn files_keep_their_name_over_versions() {
        for (path, name) in [
            ("/usr/lib/libc.so.6", "libc"),
            ("/lib/libc-2.31.so", "libc"),
            ("/opt/libfoo-bar.so.1.2", "libfoo-bar"),
            ("/x/target/release/deps/app-0123456789abcdef", "app"),
            ("/opt/app", "app"),
            ("[kernel.kallsyms]", "[kernel.kallsyms]"),
            ("", ""),
        ] {
            assert_eq!(module(path), name, "{path}");
        }
    }
}
