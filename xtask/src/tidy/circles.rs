//! Circles of imports: files of a crate of which each needs, in the end, all others.
//!
//! A file needs those whose items it names, by `use` or by a path. A name that a module only passes on (`pub use`) leads to the
//! file that it comes from. Tests don't count: they may look at everything.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};

use super::limits::{Measure, Measured};
use super::source::{has_cfg_test, is_test};

/// A module's path within its crate, from the crate's root.
type Module = Vec<String>;

/// What of one file matters here.
#[derive(Debug, Default)]
struct Imports {
    file: PathBuf,
    /// Paths that it names, absolute within the crate.
    named: BTreeSet<Module>,
    /// What it brings into its own namespace, by its name there.
    brought: BTreeMap<String, Module>,
}

/// The circles in files of crates.
pub fn check(files: &[(PathBuf, syn::File)]) -> Vec<Measured> {
    let mut crates: BTreeMap<PathBuf, BTreeMap<Module, Imports>> = BTreeMap::new();
    for (file, parsed) in files {
        let Some((root, module)) = module_of(file) else { continue };
        let mut collector = Collector { module: module.clone(), imports: Imports::default(), inner: 0 };
        collector.imports.file.clone_from(file);
        collector.visit_file(parsed);
        crates.entry(root).or_default().insert(module, collector.imports);
    }
    crates.values().flat_map(circles).collect()
}

/// The crate's `src` and the module path of one of its files; `None` for tests and what is in no `src`.
fn module_of(file: &Path) -> Option<(PathBuf, Module)> {
    let parts: Vec<&str> = file.iter().filter_map(|part| part.to_str()).collect();
    let src = parts.iter().position(|&part| part == "src")?;
    if is_test(file) {
        return None;
    }
    let mut module: Module =
        parts[src + 1..].iter().map(|part| part.trim_end_matches(".rs").into()).collect();
    if module.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        module.pop();
    }
    Some((parts[..=src].iter().collect(), module))
}

fn circles(modules: &BTreeMap<Module, Imports>) -> Vec<Measured> {
    let needs: BTreeMap<&Module, BTreeSet<&Module>> = modules
        .iter()
        .map(|(module, imports)| {
            let targets = imports.named.iter().filter_map(|path| owner(modules, path, 0));
            (module, targets.filter(|target| *target != module).collect())
        })
        .collect();
    let reach: BTreeMap<&Module, BTreeSet<&Module>> =
        needs.keys().map(|&module| (module, reachable(&needs, module))).collect();
    let mut found = Vec::new();
    let mut done: BTreeSet<&Module> = BTreeSet::new();
    for (&module, reached) in &reach {
        if done.contains(module) || !reached.contains(module) {
            continue;
        }
        let circle: Vec<&Module> =
            reached.iter().copied().filter(|other| reach[other].contains(module)).collect();
        done.extend(&circle);
        let file = modules[circle[0]].file.clone();
        let others: Vec<String> = circle.iter().skip(1).map(|other| other.join("::")).collect();
        let (line, size) = (0, circle.len());
        found.push(Measured { file, line, measure: Measure::Circle, name: others.join(", "), size });
    }
    found
}

/// The module of the file in which a named item stands.
fn owner<'a>(modules: &'a BTreeMap<Module, Imports>, path: &[String], depth: usize) -> Option<&'a Module> {
    let length = (0..=path.len()).rev().find(|&length| modules.contains_key(&path[..length]))?;
    let (module, imports) = modules.get_key_value(&path[..length])?;
    // What the module only passes on is another one's. Names may be passed on in a circle of their own.
    if let Some(from) = path.get(length).and_then(|name| imports.brought.get(name))
        && depth < 8
    {
        return owner(modules, from, depth + 1);
    }
    Some(module)
}

fn reachable<'a>(needs: &BTreeMap<&'a Module, BTreeSet<&'a Module>>, from: &Module) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&Module> = needs[from].iter().copied().collect();
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(&needs[next]);
        }
    }
    reached
}

/// Collects what a file names.
struct Collector {
    module: Module,
    imports: Imports,
    /// How many modules within the file the place at hand is in.
    inner: usize,
}

impl Collector {
    /// A path as it is named, from the crate's root; `None`: it leads out of the crate, or to a name of this file.
    fn absolute(&self, path: &[String]) -> Option<Module> {
        let first = path.first()?;
        let mut base = match first.as_str() {
            "crate" => Vec::new(),
            "self" | "super" => self.module.clone(),
            _ => return self.imports.brought.get(first).map(|from| [from, &path[1..]].concat()),
        };
        for part in path.iter().skip(usize::from(first == "crate")) {
            match part.as_str() {
                "super" => _ = base.pop(),
                "self" => {}
                _ => base.push(part.clone()),
            }
        }
        Some(base)
    }

    fn bring(&mut self, tree: &syn::UseTree, path: &mut Vec<String>) {
        match tree {
            syn::UseTree::Path(part) => {
                path.push(part.ident.to_string());
                self.bring(&part.tree, path);
                path.pop();
            }
            syn::UseTree::Name(name) => self.bring_as(&name.ident.to_string(), &name.ident.to_string(), path),
            syn::UseTree::Rename(name) => {
                self.bring_as(&name.ident.to_string(), &name.rename.to_string(), path)
            }
            syn::UseTree::Glob(_) => self.imports.named.extend(self.absolute(path)),
            syn::UseTree::Group(group) => group.items.iter().for_each(|item| self.bring(item, path)),
        }
    }

    fn bring_as(&mut self, name: &str, here: &str, path: &[String]) {
        let is_self = name == "self";
        let whole: Vec<String> = path.iter().cloned().chain((!is_self).then(|| name.into())).collect();
        let Some(absolute) = self.absolute(&whole) else { return };
        let here = if is_self { path.last().cloned().unwrap_or_default() } else { here.into() };
        self.imports.brought.insert(here, absolute);
    }
}

impl<'ast> Visit<'ast> for Collector {
    fn visit_file(&mut self, file: &'ast syn::File) {
        // Modules of this file first, then what is used: paths begin with either.
        for item in &file.items {
            if let syn::Item::Mod(module) = item
                && module.content.is_none()
            {
                let name = module.ident.to_string();
                let path = self.module.iter().cloned().chain([name.clone()]).collect();
                self.imports.brought.insert(name, path);
            }
        }
        for item in &file.items {
            if let syn::Item::Use(item) = item
                && !has_cfg_test(&item.attrs)
            {
                self.bring(&item.tree, &mut Vec::new());
            }
        }
        // What is only passed on is needed by those who name it.
        let is_private = |item: &&syn::Item| matches!(item, syn::Item::Use(item) if matches!(item.vis, syn::Visibility::Inherited));
        let private: Vec<&syn::Item> = file.items.iter().filter(is_private).collect();
        for item in private {
            if let syn::Item::Use(item) = item
                && !has_cfg_test(&item.attrs)
            {
                let mut names = Names(Vec::new());
                names.visit_item_use(item);
                let targets = names.0.iter().filter_map(|name| self.imports.brought.get(name)).cloned();
                self.imports.named.extend(targets.collect::<Vec<_>>());
            }
        }
        visit::visit_file(self, file);
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if has_cfg_test(&module.attrs) {
            return;
        }
        self.inner += 1;
        visit::visit_item_mod(self, module);
        self.inner -= 1;
    }

    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {
        // Who may see an item is not what it needs.
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if self.inner == 0 && path.leading_colon.is_none() {
            let parts: Vec<String> = path.segments.iter().map(|part| part.ident.to_string()).collect();
            let named = self.absolute(&parts);
            self.imports.named.extend(named);
        }
        visit::visit_path(self, path);
    }
}

/// The names that a `use` brings.
struct Names(Vec<String>);

impl<'ast> Visit<'ast> for Names {
    fn visit_use_name(&mut self, name: &'ast syn::UseName) {
        self.0.push(name.ident.to_string());
    }

    fn visit_use_rename(&mut self, name: &'ast syn::UseRename) {
        self.0.push(name.rename.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(files: &[(&str, &str)]) -> Vec<usize> {
        let parse = |(file, text): &(&str, &str)| (PathBuf::from(file), syn::parse_file(text).unwrap());
        check(&files.iter().map(parse).collect::<Vec<_>>()).iter().map(|one| one.size).collect()
    }

    #[test]
    fn a_circle_is_found_whichever_way_its_files_name_each_other() {
        let files = [
            ("crates/x/src/lib.rs", "mod a; mod b; mod c; use a::A; pub struct L(A);"),
            ("crates/x/src/a.rs", "use super::b::{self}; pub struct A(b::B);"),
            ("crates/x/src/b.rs", "pub struct B(crate::c::C);"),
            ("crates/x/src/c/mod.rs", "mod d; pub use d::D; pub struct C(D);"),
            ("crates/x/src/c/d.rs", "use crate::L as Root; pub struct D(Root);"),
        ];
        assert_eq!(sizes(&files), [5]);
        assert_eq!(sizes(&files[..4]), [0; 0], "without the last one it ends there");
    }

    #[test]
    fn who_passes_a_name_on_is_not_in_the_circle_and_tests_may_do_as_they_like() {
        let files = [
            ("crates/x/src/lib.rs", "mod a; mod b; mod c; mod d; pub use a::A; pub use d::D;"),
            ("crates/x/src/a.rs", "use crate::b::B; pub struct A(B);"),
            ("crates/x/src/b.rs", "use crate::c::C; pub struct B(C);"),
            ("crates/x/src/c.rs", "use crate::D; pub struct C(D);"),
            ("crates/x/src/d.rs", "pub struct D; #[cfg(test)] mod tests { use crate::A; fn t(_: A) {} }"),
        ];
        assert_eq!(sizes(&files), [0; 0]);
    }
}
