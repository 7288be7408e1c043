//! Public types by their names: one name, one meaning in the whole workspace.
//!
//! Not here: types of programs, which nobody else can name, and what is seen within a crate only.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};

use super::Finding;
use super::source::{has_cfg_test, is_test};

/// Crates in which a name may stand: a type, and another one that is made of it.
const MOST: usize = 2;
/// Crates that are programs.
const PROGRAMS: [&str; 2] = ["cli", "fixtures"];

/// Where the public types of one name are: the first place in each crate.
pub type Places = BTreeMap<String, BTreeMap<String, (PathBuf, usize)>>;

/// The public types of the libraries by their names.
pub fn places(files: &[(PathBuf, syn::File)]) -> Places {
    let mut places = Places::new();
    for (file, parsed) in files {
        let Some(library) = library(file).filter(|_| !is_test(file)) else { continue };
        let mut types = Types(BTreeSet::new());
        types.visit_file(parsed);
        for (name, line) in types.0 {
            places.entry(name).or_default().entry(library.to_owned()).or_insert((file.clone(), line));
        }
    }
    places.retain(|_, crates| crates.len() > MOST);
    places
}

/// Findings: names that stand in more than two crates.
pub fn check(files: &[(PathBuf, syn::File)]) -> Vec<Finding> {
    let finding = |(name, crates): (String, BTreeMap<String, (PathBuf, usize)>)| {
        let list = crates.keys().cloned().collect::<Vec<_>>().join(", ");
        let (file, line) = crates.into_values().next().unwrap_or_default();
        let what = format!("`{name}` is a public type in {list}: name each by what tells it from the others");
        Finding { file, line, what }
    };
    places(files).into_iter().map(finding).collect()
}

/// The library that a file belongs to.
fn library(file: &Path) -> Option<&str> {
    let mut parts = file.iter().filter_map(|part| part.to_str());
    let (crates, name, src) = (parts.next()?, parts.next()?, parts.next()?);
    (crates == "crates" && src == "src" && !PROGRAMS.contains(&name)).then_some(name)
}

/// Names of public types and the lines on which they stand.
struct Types(BTreeSet<(String, usize)>);

impl Types {
    fn add(&mut self, visibility: &syn::Visibility, name: &syn::Ident) {
        if matches!(visibility, syn::Visibility::Public(_)) {
            self.0.insert((name.to_string(), name.span().start().line));
        }
    }
}

impl<'ast> Visit<'ast> for Types {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !has_cfg_test(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item(&mut self, item: &'ast syn::Item) {
        match item {
            syn::Item::Struct(one) => self.add(&one.vis, &one.ident),
            syn::Item::Enum(one) => self.add(&one.vis, &one.ident),
            syn::Item::Union(one) => self.add(&one.vis, &one.ident),
            syn::Item::Trait(one) => self.add(&one.vis, &one.ident),
            syn::Item::Type(one) => self.add(&one.vis, &one.ident),
            _ => {}
        }
        visit::visit_item(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let parsed: Vec<(PathBuf, syn::File)> =
            files.iter().map(|(file, text)| ((*file).into(), syn::parse_file(text).unwrap())).collect();
        check(&parsed).into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn a_name_in_three_libraries_is_found() {
        let file = |name: &str| format!("crates/{name}/src/lib.rs");
        let [a, b, c] = ["a", "b", "c"].map(file);
        let text = "pub struct Options; pub(crate) struct Own; pub mod tests { pub enum Kind {} }";
        let what = found(&[(&a, text), (&b, text), (&c, "pub trait Options {}")]);
        assert_eq!(what.len(), 1, "{what:?}");
        assert!(what[0].starts_with("`Options` is a public type in a, b, c:"));
        assert!(found(&[(&a, text), (&b, text)]).is_empty(), "two may");
        let hidden = "#[cfg(test)] mod tests { pub struct Options; }";
        assert!(found(&[(&a, text), (&b, text), (&c, hidden)]).is_empty());
        assert!(found(&[(&a, text), (&b, text), ("crates/cli/src/x.rs", text)]).is_empty(), "no library");
    }
}
