//! Which functions a rule is about, by their names.

use crate::names::{collapse_templates, without_parameters};

/// Names of functions, without parameters and template arguments. A C function's pieces and aliases (`f.cold`, `f@plt`) go by its name.
pub(super) struct Names {
    /// Whole names.
    pub(super) whole: &'static [&'static str],
    /// What names begin with.
    pub(super) begin: &'static [&'static str],
}

impl Names {
    /// Whether a function of this [`plain`] name is meant.
    pub(super) fn has(&self, plain: &str) -> bool {
        self.whole.contains(&plain) || self.begin.iter().any(|begin| plain.starts_with(begin))
    }
}

/// The name that [`Names`] are held against.
pub(super) fn plain(name: &str) -> String {
    let name = without_parameters(name);
    // `<T as Trait>::method` is nothing but brackets up to its method.
    if name.starts_with('<') {
        return name.to_owned();
    }
    let name = collapse_templates(name);
    if !name.contains("::") && !name.contains("operator") {
        let end = name.find('@').filter(|&at| at > 0).unwrap_or(name.len());
        return without_piece(&name[..end]).to_owned();
    }
    // Template arguments of an operator stand apart from it; what a function template returns stands before its name.
    let name = name.strip_suffix(" <…>").unwrap_or(&name);
    match name.rsplit_once(' ') {
        Some((before, after)) if !before.ends_with("operator") && !before.contains("operator ") => {
            after.to_owned()
        }
        _ => name.to_owned(),
    }
}

/// What compilers put behind the name of a function of which they make several, or pieces.
const PIECES: [&str; 8] =
    [".part.", ".cold", ".isra.", ".constprop.", ".lto_priv.", ".llvm.", ".localalias", ".clone."];

/// The name without that. Dots of other languages stay.
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
