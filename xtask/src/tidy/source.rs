//! The shape of a Rust file: its `//!` header, how long it and its functions are, how many fields a struct has,
//! whether `unsafe` may stand in it.

use std::path::Path;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::Finding;

const FILE_LINES: usize = 800;
const FUNCTION_LINES: usize = 100;
const STRUCT_FIELDS: usize = 25;

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
pub fn check(file: &Path, text: &str) -> Vec<Finding> {
    let finding = |line, what: String| Finding { file: file.to_owned(), line, what };
    let is_fuzz = file.starts_with("fuzz");
    let mut findings = Vec::new();
    if !text.trim_start().trim_start_matches("#![no_main]").trim_start().starts_with("//!") {
        findings.push(finding(
            1,
            "a file opens with `//!`: what it holds, its invariant, what is not here".into(),
        ));
    }
    let parsed = match syn::parse_file(text) {
        Ok(parsed) => parsed,
        Err(error) => {
            findings.push(finding(error.span().start().line, format!("does not parse: {error}")));
            return findings;
        }
    };
    let tests_from =
        parsed.items.iter().find(|item| is_test_module(item)).map(|item| item.span().start().line);
    let lines = tests_from.unwrap_or_else(|| text.lines().count());
    if lines > FILE_LINES && !is_test(file) {
        findings.push(finding(
            0,
            format!("{lines} lines without its tests: it is two things (at most {FILE_LINES})"),
        ));
    }
    let mut shape = Shape { findings: Vec::new(), in_test: is_test(file) || is_fuzz };
    shape.visit_file(&parsed);
    findings.extend(shape.findings.into_iter().map(|(line, what)| finding(line, what)));
    if !UNSAFE_ALLOWED.iter().any(|allowed| file.to_string_lossy().starts_with(allowed)) {
        let mut uses = UnsafeUse(Vec::new());
        uses.visit_file(&parsed);
        findings.extend(uses.0.into_iter().map(|line| finding(line, "`unsafe` has no place here".into())));
    }
    findings
}

fn is_test(file: &Path) -> bool {
    file.components().any(|part| part.as_os_str() == "tests") || file.ends_with("tests.rs")
}

fn is_test_module(item: &syn::Item) -> bool {
    matches!(item, syn::Item::Mod(module) if has_cfg_test(&module.attrs))
}

fn has_cfg_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test")
    })
}

struct Shape {
    findings: Vec<(usize, String)>,
    in_test: bool,
}

impl Shape {
    fn function(&mut self, name: &syn::Ident, block: &syn::Block) {
        let (start, end) = (name.span().start().line, block.span().end().line);
        if end - start >= FUNCTION_LINES && !self.in_test {
            let lines = end - start + 1;
            self.findings.push((start, format!("`{name}` has {lines} lines (at most {FUNCTION_LINES})")));
        }
    }
}

impl<'ast> Visit<'ast> for Shape {
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

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.function(&function.sig.ident, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        let fields = item.fields.len();
        if fields >= STRUCT_FIELDS {
            let name = &item.ident;
            let what =
                format!("struct `{name}` has {fields} fields: it is two things (fewer than {STRUCT_FIELDS})");
            self.findings.push((name.span().start().line, what));
        }
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
        check(Path::new(file), text).into_iter().map(|finding| finding.what).collect()
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
        let body = "    g();\n".repeat(FUNCTION_LINES);
        let text = format!("//! What.\nfn f() {{\n{body}}}\n");
        assert!(what("crates/unwind/src/x.rs", &text)[0].contains("`f` has 102 lines"));
        assert!(what("crates/unwind/tests/x.rs", &text).is_empty());
    }

    #[test]
    fn a_wide_struct_is_found() {
        let fields = "u8,".repeat(STRUCT_FIELDS);
        assert!(
            what("crates/unwind/src/x.rs", &format!("//! W.\nstruct S({fields});"))[0].contains("25 fields")
        );
    }
}
