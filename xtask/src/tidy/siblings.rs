//! Commands of the cli know nothing of each other: what two of them need is a module of its own, named for what it does.
//!
//! Invariant: a file in `crates/cli/src/cmd/NAME` names no other command's module.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::Finding;

/// Where commands are.
const COMMANDS: &str = "crates/cli/src/cmd";

/// The names of the commands among the repository's files.
pub fn commands(files: &[PathBuf]) -> BTreeSet<String> {
    files.iter().filter_map(|file| command(file)).filter(|name| name != "mod").collect()
}

/// Findings about one file: paths into other commands.
pub fn check(file: &Path, text: &str, commands: &BTreeSet<String>) -> Vec<Finding> {
    let Some(own) = command(file).filter(|own| own != "mod") else { return Vec::new() };
    let Ok(parsed) = syn::parse_file(text) else { return Vec::new() };
    let depth = file.strip_prefix(COMMANDS).map_or(0, |rest| rest.components().count());
    let mut paths = Paths { own, depth, commands, found: Vec::new() };
    paths.visit_file(&parsed);
    let what = |other: &str| {
        format!("command `{}` uses command `{other}`: what both need is a module beside cmd/", paths.own)
    };
    paths
        .found
        .iter()
        .map(|(line, other)| Finding { file: file.to_owned(), line: *line, what: what(other) })
        .collect()
}

/// The command that a file belongs to.
fn command(file: &Path) -> Option<String> {
    let first = file.strip_prefix(COMMANDS).ok()?.components().next()?;
    Some(Path::new(first.as_os_str()).file_stem()?.to_str()?.to_owned())
}

struct Paths<'c> {
    own: String,
    /// So many `super` lead from the file's module to `cmd`.
    depth: usize,
    commands: &'c BTreeSet<String>,
    found: Vec<(usize, String)>,
}

impl Paths<'_> {
    /// Looks at the words of a path.
    fn look(&mut self, words: &[String], line: usize) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let supers = words.iter().take_while(|word| **word == "super").count();
        let other = match &words[..] {
            ["crate", "cmd", other, ..] => other,
            _ if supers == self.depth => match words.get(supers) {
                Some(other) => other,
                None => return,
            },
            _ => return,
        };
        if *other != self.own && self.commands.contains(*other) {
            self.found.push((line, (*other).to_owned()));
        }
    }

    fn tree(&mut self, tree: &syn::UseTree, before: &[String]) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.tree(&path.tree, &with(&path.ident)),
            syn::UseTree::Name(name) => self.look(&with(&name.ident), name.span().start().line),
            syn::UseTree::Rename(name) => self.look(&with(&name.ident), name.span().start().line),
            syn::UseTree::Group(group) => group.items.iter().for_each(|item| self.tree(item, before)),
            syn::UseTree::Glob(_) => {}
        }
    }
}

impl<'ast> Visit<'ast> for Paths<'_> {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.tree(&item.tree, &[]);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let words: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.look(&words, path.span().start().line);
        visit::visit_path(self, path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(file: &str, text: &str) -> usize {
        let files = ["a.rs", "b.rs", "b/text.rs", "mod.rs"].map(|name| Path::new(COMMANDS).join(name));
        check(&Path::new(COMMANDS).join(file), text, &commands(&files)).len()
    }

    #[test]
    fn a_command_may_not_use_another() {
        assert_eq!(found("a.rs", "use crate::cmd::b::Args;"), 1);
        assert_eq!(found("a.rs", "use super::{b, c};"), 1);
        assert_eq!(found("a.rs", "fn f() { crate::cmd::b::run() }"), 1);
        assert_eq!(found("b/text.rs", "use super::super::a::X;"), 1);
        assert_eq!(found("b/text.rs", "use crate::cmd::{b::Args, a::X};"), 1);
    }

    #[test]
    fn its_own_modules_and_shared_ones_are_free() {
        assert_eq!(found("b/text.rs", "use super::a; use crate::cmd::b::Args; use crate::render::table;"), 0);
        assert_eq!(found("mod.rs", "const X: b::Y = a::Z;"), 0);
        assert_eq!(found("a.rs", "use self::b::X;"), 0);
    }
}
