//! Demangling of linkage names.
//!
//! Names are shown without parameters and return types, as in perf: `std::vector<int>::push_back`. Rust names
//! are shown without their hash. Hostile names can make a demangler recurse or produce huge output, so both are
//! bounded; names beyond a bound are shown as they are.

mod dlang;

use std::fmt::{self, Write};

use cpp_demangle::{DemangleOptions, ParseOptions, Symbol};

/// Longest demangled name, in bytes. The longest in LibreOffice, Chromium and LLVM have some ten thousand.
const MAX_NAME: usize = 1 << 16;
/// Longest linkage name that is parsed.
const MAX_LINKAGE_NAME: usize = 1 << 16;
/// Deepest nesting while parsing: each level takes at most a few hundred bytes of stack.
const MAX_DEPTH: u32 = 96;
/// Number of prefixes tried if a name cannot be parsed as a whole.
const MAX_TRIES: usize = 32;

/// Returns the readable form of a linkage name that is not mangled, which takes no work; otherwise the name itself, which
/// [`demangle`] converts later.
pub(crate) fn readable_at_once(linkage_name: &str) -> String {
    if is_mangled(linkage_name) { linkage_name.to_owned() } else { demangle(linkage_name) }
}

/// Whether a name may be mangled.
pub(crate) fn is_mangled(name: &str) -> bool {
    ["_Z", "_R", "__R", "__ZN", "_GLOBAL_", "_D"].iter().any(|start| name.starts_with(start))
}

/// Returns the readable form of a linkage name; the name itself if it is not mangled.
pub(crate) fn demangle(linkage_name: &str) -> String {
    if let Some(function) = linkage_name.strip_suffix("@plt") {
        return demangle(function) + "@plt";
    }
    let name = without_version(linkage_name);
    if name.len() > MAX_LINKAGE_NAME {
        return name.to_owned();
    }
    rust(name)
        .or_else(|| cpp(name))
        .or_else(|| dlang::demangle(name, false))
        .unwrap_or_else(|| name.to_owned())
}

/// Strips the version that the linker appends to a symbol's name (`memcpy@@GLIBC_2.14`).
pub(crate) fn without_version(name: &str) -> &str {
    match name.find('@') {
        Some(at) if at > 0 => &name[..at],
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
    // Compiler suffixes for copies of a function (`.isra.0`, `.cold`) are dropped, as in perf.
    let name = name.split('.').next()?;
    cpp_whole(name).or_else(|| {
        // The parser does not know all expressions in return types and parameters (`enable_if`), which are dropped
        // anyway, so a prefix without them will do. The name may be complete at the end of each list.
        let ends = name.rmatch_indices('E').map(|(at, _)| at + 1).filter(|&end| end < name.len());
        ends.take(MAX_TRIES).find_map(|end| cpp_whole(&name[..end]))
    })
}

fn cpp_whole(name: &str) -> Option<String> {
    let parse = ParseOptions::default().recursion_limit(MAX_DEPTH);
    let symbol = Symbol::new_with_options(name, &parse).ok()?;
    let options = DemangleOptions::new().no_params().no_return_type().recursion_limit(MAX_DEPTH);
    let mut out = Bounded(String::new());
    symbol.structured_demangle(&mut out, &options).ok()?;
    Some(with_suffixes(without_qualifiers(&out.0)))
}

/// Writes numeric template arguments as binutils does: `get<0ul>`, not `get<(unsigned long)0>`.
fn with_suffixes(name: &str) -> String {
    const TYPES: [(&str, &str); 5] = [
        ("(unsigned long long)", "ull"),
        ("(unsigned long)", "ul"),
        ("(unsigned int)", "u"),
        ("(long long)", "ll"),
        ("(long)", "l"),
    ];
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find('(') {
        let (before, behind) = rest.split_at(at);
        out.push_str(before);
        let found = TYPES.iter().find_map(|&(prefix, suffix)| {
            let number = behind.strip_prefix(prefix)?;
            let length = number.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'-').count();
            (length > 0).then(|| (&number[..length], suffix, &number[length..]))
        });
        match found {
            Some((number, suffix, after)) => {
                out.push_str(number);
                out.push_str(suffix);
                rest = after;
            }
            None => {
                out.push('(');
                rest = &behind[1..];
            }
        }
    }
    out + rest
}

/// Strips `const` and `&` of the parameter list left out (`List::size const`).
fn without_qualifiers(mut name: &str) -> &str {
    // After `operator ` comes a type, whose qualifiers belong to it.
    while let Some(shorter) =
        [" const", " volatile", " &&", " &"].iter().find_map(|end| name.strip_suffix(end))
    {
        if shorter.contains("operator ") {
            break;
        }
        name = shorter;
    }
    name
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

#[cfg(test)]
mod tests {
    use super::demangle;

    #[test]
    fn what_is_readable_at_once_is_what_demangling_gives() {
        for name in [
            "main",
            "memcpy@@GLIBC_2.14",
            "free@plt",
            "*ABS*+0x9be70@plt",
            "",
            "@",
            "cfree@GLIBC_2.2.5",
            ".plt",
        ] {
            assert_eq!(super::readable_at_once(name), demangle(name), "{name}");
        }
        for name in ["_Znwm@plt", "_ZNSs4sizeEv@@GLIBCXX_3.4", "_RNvCs1234_7mycrate3foo"] {
            assert_eq!(super::readable_at_once(name), name);
        }
    }

    #[test]
    fn names_of_every_kind() {
        assert_eq!(demangle("main"), "main");
        assert_eq!(demangle("memcpy@@GLIBC_2.14"), "memcpy");
        assert_eq!(demangle("_ZNK5Local5twiceEv.isra.0"), "Local::twice");
        assert_eq!(demangle("_Znwm@plt"), "operator new@plt");
        assert_eq!(demangle("free@plt"), "free@plt");
        assert_eq!(demangle("_ZSt3getILm0EiEvv"), "std::get<0ul, int>");
        assert_eq!(demangle("_ZNK3FoocvPKcEv"), "Foo::operator char const*");
        assert_eq!(demangle("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
        assert_eq!(demangle("_RNvCs1234_7mycrate3foo"), "mycrate::foo");
        assert_eq!(demangle("_D4main3fooFZv"), "main.foo");
        assert_eq!(demangle("_Dmain"), "D main");
        assert_eq!(
            demangle(
                "_D3std8typecons__T10RefCountedTSQBe3net4curl4HTTP4ImplVEQCcQCb24RefCountedAutoInitializei1ZQCv15RefCountedStore13isInitializedMxFNaNbNdNiNfZb"
            ),
            "std.typecons.RefCounted!(std.net.curl.HTTP.Impl, 1).RefCounted.RefCountedStore.isInitialized"
        );
        assert_eq!(demangle("_D3std5stdio12__ModuleInfoZ"), "ModuleInfo for std.stdio");
        assert_eq!(demangle("_DYNAMIC"), "_DYNAMIC");
    }

    #[test]
    fn names_made_to_blow_up_are_left_as_they_are() {
        // With the same stack size as the workers.
        let thread = std::thread::Builder::new().stack_size(crate::work::STACK);
        thread.spawn(blow_up).unwrap().join().unwrap();
    }

    fn blow_up() {
        let nested = format!("_Z1f{}i{}", "P".repeat(60_000), "");
        assert_eq!(demangle(&nested), nested);
        let templates = format!("_Z1f{}", "IX1gI".repeat(5000));
        assert_eq!(demangle(&templates), templates);
        // Each substitution doubles the previous one's expansion.
        let mut doubling = "_Z1fI1aS_IS_S_E".to_owned();
        (0..36).for_each(|n| doubling += &format!("S_IS{n:X}_S{n:X}_E"));
        assert!(demangle(&doubling).len() <= super::MAX_NAME);
    }
}
