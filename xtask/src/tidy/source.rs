//! The shape of a Rust file: its `//!` header, how long it and its functions are, how many fields a struct has,
//! whether `unsafe` may stand in it.

use std::path::Path;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::Finding;
use super::limits::{Measure, Measured};

/// Where `unsafe` may stand: system calls and the memory that the kernel shares with us, a signal handler, and tests that
/// trace processes or count allocations. Everything else is forbidden by the compiler (`unsafe_code = "deny"`), unless a
/// file allows it for itself; this list is what stops that.
const UNSAFE_ALLOWED: &[&str] = &[
    "crates/capture-bpf/",
    "crates/capture-perf/",
    "crates/process/",
    "crates/sampler/",
    "crates/snapshot/",
    "crates/target/",
    "crates/unwind/tests/oracle",
    "crates/unwind/tests/allocations.rs",
];

/// Findings about one Rust file.
pub fn check(file: &Path, text: &str, parsed: &syn::File) -> Vec<Finding> {
    let finding = |line, what: &str| Finding { file: file.to_owned(), line, what: what.into() };
    let mut findings = Vec::new();
    if !text.trim_start().trim_start_matches("#![no_main]").trim_start().starts_with("//!") {
        findings.push(finding(1, "a file opens with `//!`: what it holds, its invariant, what is not here"));
    }
    if !UNSAFE_ALLOWED.iter().any(|allowed| file.to_string_lossy().starts_with(allowed)) {
        let mut uses = UnsafeUse(Vec::new());
        uses.visit_file(parsed);
        findings.extend(uses.0.into_iter().map(|line| finding(line, "`unsafe` has no place here")));
    }
    findings
}

/// How large a Rust file is, and what is in it. Tests are as long as they are.
pub fn measure(file: &Path, text: &str, parsed: &syn::File) -> Vec<Measured> {
    let tests_from =
        parsed.items.iter().find(|item| is_test_module(item)).map(|item| item.span().start().line);
    let lines = tests_from.map_or_else(|| text.lines().count(), |line| line - 1);
    let in_test = is_test(file) || file.starts_with("fuzz");
    let mut shape = Shape { file, measured: Vec::new(), in_test };
    if !in_test {
        shape.add(0, Measure::File, String::new(), lines);
    }
    shape.visit_file(parsed);
    shape.measured
}

/// Whether a file holds nothing but tests.
pub fn is_test(file: &Path) -> bool {
    let is_named_so = file.file_stem().is_some_and(|stem| {
        let stem = stem.to_string_lossy();
        stem == "tests" || stem.ends_with("_tests")
    });
    is_named_so || file.components().any(|part| part.as_os_str() == "tests")
}

fn is_test_module(item: &syn::Item) -> bool {
    matches!(item, syn::Item::Mod(module) if has_cfg_test(&module.attrs))
}

/// Whether something is there for tests only.
pub fn has_cfg_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test")
    })
}

struct Shape<'a> {
    file: &'a Path,
    measured: Vec<Measured>,
    in_test: bool,
}

impl Shape<'_> {
    fn function(&mut self, name: &syn::Ident, block: &syn::Block) {
        let (start, end) = (name.span().start().line, block.span().end().line);
        if !self.in_test {
            self.add(start, Measure::Function, name.to_string(), end - start + 1);
        }
    }

    fn add(&mut self, line: usize, measure: Measure, name: String, size: usize) {
        self.measured.push(Measured { file: self.file.to_owned(), line, measure, name, size });
    }
}

impl<'ast> Visit<'ast> for Shape<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let outer = self.in_test;
        self.in_test |= has_cfg_test(&module.attrs);
        visit::visit_item_mod(self, module);
        self.in_test = outer;
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.function(&function.sig.ident, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.function(&function.sig.ident, block);
        }
        visit::visit_trait_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.function(&function.sig.ident, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        let line = item.ident.span().start().line;
        self.add(line, Measure::Struct, item.ident.to_string(), item.fields.len());
        visit::visit_item_struct(self, item);
    }
}

/// Lines on which `unsafe` code stands.
struct UnsafeUse(Vec<usize>);

impl<'ast> Visit<'ast> for UnsafeUse {
    fn visit_expr_unsafe(&mut self, block: &'ast syn::ExprUnsafe) {
        self.0.push(block.span().start().line);
        visit::visit_expr_unsafe(self, block);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        if let syn::Safety::Unsafe(word) = &signature.safety {
            self.0.push(word.span.start().line);
        }
        visit::visit_signature(self, signature);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if let Some(word) = item.unsafety {
            self.0.push(word.span.start().line);
        }
        visit::visit_item_impl(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn what(file: &str, text: &str) -> Vec<String> {
        let found = check(Path::new(file), text, &syn::parse_file(text).unwrap());
        found.into_iter().map(|finding| finding.what).collect()
    }

    fn sizes(file: &str, text: &str) -> Vec<(String, usize)> {
        let measured = measure(Path::new(file), text, &syn::parse_file(text).unwrap());
        measured
            .into_iter()
            .filter(|one| one.size > one.measure.most())
            .map(|one| (one.name, one.size))
            .collect()
    }

    #[test]
    fn a_good_file_passes() {
        assert!(what("crates/profile/src/x.rs", "//! What.\n\nfn f() {}\n").is_empty());
    }

    #[test]
    fn a_header_is_asked_for() {
        assert!(what("crates/profile/src/x.rs", "fn f() {}\n")[0].contains("opens with"));
    }

    #[test]
    fn unsafe_is_found_outside_its_places_only() {
        let text = "//! What.\nfn f() { unsafe { g() } }\n";
        assert_eq!(what("crates/unwind/src/x.rs", text), ["`unsafe` has no place here"]);
        assert!(what("crates/process/src/x.rs", text).is_empty());
    }

    #[test]
    fn a_long_function_is_found_but_not_in_tests() {
        let body = "    g();\n".repeat(Measure::Function.most());
        let text = format!("//! What.\nfn f() {{\n{body}}}\n");
        assert_eq!(sizes("crates/unwind/src/x.rs", &text), [("f".into(), Measure::Function.most() + 2)]);
        assert_eq!(sizes("crates/unwind/tests/x.rs", &text), []);
        assert_eq!(sizes("crates/unwind/src/x_tests.rs", &text), []);
    }

    #[test]
    fn a_wide_struct_is_found() {
        let most = Measure::Struct.most();
        let text = |fields| format!("//! W.\nstruct S({});", "u8,".repeat(fields));
        assert_eq!(sizes("crates/unwind/src/x.rs", &text(most + 1)), [("S".into(), most + 1)]);
        assert_eq!(sizes("crates/unwind/src/x.rs", &text(most)), []);
    }

    #[test]
    fn a_long_file_is_found_without_its_tests() {
        let most = Measure::File.most();
        let text =
            |lines| format!("//! L.\n{}#[cfg(test)]\nmod tests {{}}\n", "const A: u8 = 1;\n".repeat(lines));
        assert_eq!(sizes("crates/unwind/src/x.rs", &text(most)), [(String::new(), most + 1)]);
        assert_eq!(sizes("crates/unwind/src/x.rs", &text(most - 1)), []);
    }
}
