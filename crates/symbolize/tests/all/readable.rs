//! Names demangled later equal those demangled at once.

#![allow(clippy::unwrap_used)] // A test that can go no further fails.

use plumb_profile::{Address, Function, Profile};
use plumb_symbolize::make_readable;

/// Adds a function, and returns its id.
fn add(profile: &mut Profile, name: &str, linkage_name: &str, start: u64) -> plumb_profile::FunctionId {
    let name = profile.strings.add(name);
    let linkage_name = profile.strings.add(linkage_name);
    let source_file = profile.strings.empty();
    let function =
        Function { name, linkage_name, dso: None, start: Some(Address(start)), source_file, start_line: 0 };
    profile.symbols.functions.add(function)
}

#[test]
fn only_mangled_names_that_nobody_made_readable_change() {
    let mut profile = Profile::default();
    // Mangled name, readable name: c++filt's without parameters.
    let cases = [
        ("_ZN3foo3barEi", "_ZN3foo3barEi", "foo::bar"),
        (
            "_ZN4core3fmt5write17h0123456789abcdefE",
            "_ZN4core3fmt5write17h0123456789abcdefE",
            "core::fmt::write",
        ),
        ("_Znwm@plt", "_Znwm@plt", "operator new@plt"),
        ("_ZNSs4sizeEv@@GLIBCXX_3.4", "_ZNSs4sizeEv@@GLIBCXX_3.4", "std::string::size"),
        ("main", "main", "main"),
        ("mine", "_ZN3foo3barEi", "mine"),
        ("_ZN3foo3barEi", "", "_ZN3foo3barEi"),
        ("_Z!", "_Z!", "_Z!"),
        ("", "", ""),
    ];
    let mut ids = Vec::new();
    for (start, (name, linkage_name, _)) in (0..).zip(cases) {
        ids.push(add(&mut profile, name, linkage_name, start));
    }
    // Two names that only differ in that one is already demangled: they become equal, and keep their ids.
    let mangled = add(&mut profile, "_ZN1a1bEv", "_ZN1a1bEv", 100);
    let readable = add(&mut profile, "a::b", "_ZN1a1bEv", 100);
    make_readable(&mut profile);
    let name = |id| profile.strings.get(profile.symbols.functions[id].name).to_owned();
    for (id, (_, _, expected)) in ids.iter().zip(cases) {
        assert_eq!(name(*id), expected);
    }
    assert_ne!(mangled, readable);
    assert_eq!((name(mangled), name(readable)), ("a::b".to_owned(), "a::b".to_owned()));
    assert_eq!(profile.symbols.functions.find(&profile.symbols.functions[readable]), Some(mangled));
}

#[test]
fn many_names_come_back_in_their_places() {
    let mut profile = Profile::default();
    let ids: Vec<_> = (0..2_000)
        .map(|number| {
            let short = format!("f{number}");
            let mangled = format!("_Z{}{short}v", short.len());
            (add(&mut profile, &mangled, &mangled, number), short)
        })
        .collect();
    make_readable(&mut profile);
    for (id, expected) in ids {
        assert_eq!(profile.strings.get(profile.symbols.functions[id].name), expected);
    }
}
