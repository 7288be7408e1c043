//! A file among the suites of a program is one of its modules: what no module declaration names is never built, and its tests never run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use syn::Item;

use super::Finding;

/// Findings about all parsed files.
pub fn check(files: &[(PathBuf, syn::File)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (root, program) in files.iter().filter(|(file, _)| file.ends_with("tests/all/main.rs")) {
        let declared: BTreeSet<String> = program.items.iter().filter_map(module).collect();
        let directory = root.parent().unwrap_or(Path::new(""));
        for (file, _) in files.iter().filter(|(file, _)| file != root && file.parent() == Some(directory)) {
            let name = file.file_stem().unwrap_or_default().to_string_lossy();
            if !declared.contains(name.as_ref()) {
                let what = format!("no test of it runs: {} lacks `mod {name};`", root.display());
                findings.push(Finding { file: file.clone(), line: 1, what });
            }
        }
    }
    findings
}

fn module(item: &Item) -> Option<String> {
    match item {
        Item::Mod(module) => Some(module.ident.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_no_module_names_is_found() {
        let parsed = |file: &str, text: &str| (PathBuf::from(file), syn::parse_file(text).unwrap());
        let files = [
            parsed("crates/x/tests/all/main.rs", "mod api; mod support;"),
            parsed("crates/x/tests/all/api.rs", ""),
            parsed("crates/x/tests/all/routes.rs", ""),
            parsed("crates/x/tests/all/support/mod.rs", ""),
            parsed("crates/x/tests/record.rs", ""),
        ];
        let found = check(&files);
        assert_eq!(found.len(), 1);
        assert!(found[0].file.ends_with("routes.rs"));
    }
}
