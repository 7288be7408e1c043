//! Sets of functions, by name.

use crate::names::{collapse_templates, without_parameters};

/// Names of functions, without parameters and template arguments. Parts and aliases of a C function (`f.cold`,
/// `f@plt`) match its name.
pub(in crate::advice) struct Names {
    /// Full names.
    pub whole: &'static [&'static str],
    /// Prefixes of names.
    pub begin: &'static [&'static str],
}

impl Names {
    /// Creates a set that is kept for as long as the program runs, as the rules are.
    pub(in crate::advice) fn kept(whole: &[&'static str], begin: &[&'static str]) -> Self {
        Self { whole: whole.to_vec().leak(), begin: begin.to_vec().leak() }
    }

    /// Returns whether a function with this [`plain`] name is in the set.
    pub(super) fn has(&self, plain: &str) -> bool {
        self.whole.contains(&plain) || self.begin.iter().any(|begin| plain.starts_with(begin))
    }
}

/// Returns the form of a name that [`Names`] are compared with.
pub(super) fn plain(name: &str) -> String {
    let name = without_parameters(name);
    // Nearly all of `<T as Trait>::method` is in brackets, so keep it whole.
    if name.starts_with('<') {
        return name.to_owned();
    }
    let name = collapse_templates(name);
    if !name.contains("::") && !name.contains("operator") {
        let end = name.find('@').filter(|&at| at > 0).unwrap_or(name.len());
        return without_piece(&name[..end]).to_owned();
    }
    // Template arguments of an operator are separated from it by a space. The return type of a function template
    // precedes its name.
    let name = name.strip_suffix(" <…>").unwrap_or(&name);
    match name.rsplit_once(' ') {
        Some((before, after)) if !before.ends_with("operator") && !before.contains("operator ") => {
            after.to_owned()
        }
        _ => name.to_owned(),
    }
}

/// Suffixes that compilers add to the names of function clones and parts.
const PIECES: [&str; 8] =
    [".part.", ".cold", ".isra.", ".constprop.", ".lto_priv.", ".llvm.", ".localalias", ".clone."];

/// Removes such a suffix. Keeps the dots of other languages.
fn without_piece(name: &str) -> &str {
    let end = PIECES.iter().filter_map(|piece| name.find(piece)).filter(|&at| at > 0).min();
    &name[..end.unwrap_or(name.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_demanglers_write_is_made_plain() {
        for (name, is) in [
            ("malloc", "malloc"),
            ("_int_malloc.part.0", "_int_malloc"),
            ("free@plt", "free"),
            ("fmt.Sprintf", "fmt.Sprintf"),
            ("sync.(*Mutex).Lock", "sync.(*Mutex).Lock"),
            ("operator new(unsigned long)", "operator new"),
            ("operator delete[](void*)", "operator delete[]"),
            (
                "void std::__introsort_loop<__gnu_cxx::__normal_iterator<int*, std::vector<int> >, long>(int*, long)",
                "std::__introsort_loop<…>",
            ),
            ("std::ostream& std::ostream::_M_insert<double>(double)", "std::ostream::_M_insert<…>"),
            ("std::ostream::operator<<(int)", "std::ostream::operator<<"),
            (
                "std::basic_ostream<char, std::char_traits<char> >& std::operator<< <std::char_traits<char> >(char const*)",
                "std::operator<<",
            ),
            (
                "<core::hash::sip::Hasher<S> as core::hash::Hasher>::write",
                "<core::hash::sip::Hasher<S> as core::hash::Hasher>::write",
            ),
            ("core::fmt::write", "core::fmt::write"),
            (".text", ".text"),
        ] {
            assert_eq!(plain(name), is, "{name}");
        }
    }
}
