//! Shortening of demangled function names.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The name without its parameter list and what follows it: `walk(Node const*)` is `walk`,
/// `f<g(int)>::h() const [clone .cold]` is `f<g(int)>::h`. The receiver of a method of Go, `(*Mutex)`, and
/// the template arguments of D, `map!(int)`, are no parameter lists. Names without a parameter list stay as they are.
pub fn without_parameters(name: &str) -> &str {
    let mut depth = 0_usize;
    let mut open = 0;
    let mut best = None;
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            b'<' | b'>' if is_operator(&name[..at]) => {}
            b'(' | b'<' | b'[' | b'{' => {
                if depth == 0 {
                    open = at;
                }
                depth += 1;
            }
            b'>' if at > 0 && name.as_bytes()[at - 1] == b'-' => {}
            b')' | b'>' | b']' | b'}' if depth > 0 => {
                depth -= 1;
                // A parameter list is the last outermost parenthesis that is not a part of the name itself.
                let is_part =
                    |part: &str| part.starts_with("(anonymous namespace)") || part.starts_with("(*");
                if depth == 0 && byte == b')' && !is_part(&name[open..=at]) && !opens_arguments(&name[..open])
                {
                    best = Some(open);
                }
            }
            _ => {}
        }
    }
    match best {
        Some(0) | None => name,
        Some(open) if name[..open].ends_with("operator") => {
            name[..open].len().checked_add(2).map_or(name, |end| &name[..end])
        }
        Some(open) => &name[..open],
    }
}

/// Shortens a name to at most `width` terminal columns: first its template arguments become `…`, then its parameters are dropped,
/// then its middle.
pub fn shorten(name: &str, width: usize) -> Cow<'_, str> {
    if name.width() <= width {
        return name.into();
    }
    let collapsed = collapse_templates(name);
    if collapsed.width() <= width {
        return collapsed.into();
    }
    cut_middle(without_parameters(&collapsed), width).into()
}

/// Shortens a text to at most `width` terminal columns by replacing its middle with `…`.
pub fn cut_middle(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.into();
    }
    let Some(kept) = width.checked_sub(1) else { return String::new() };
    // More of the end is kept: it has the function's own name.
    let head = kept / 2;
    let fits = |limit: usize| {
        let mut columns = 0;
        move |character: char| {
            columns += character.width().unwrap_or(1);
            columns <= limit
        }
    };
    let (mut fits_before, mut fits_behind) = (fits(head), fits(kept - head));
    let start = text.find(|one| !fits_before(one)).unwrap_or(text.len());
    let end = text.char_indices().rev().find(|&(_, one)| !fits_behind(one));
    let end = end.map_or(0, |(at, one)| at + one.len_utf8());
    format!("{}…{}", &text[..start], &text[end..])
}

/// Replaces the contents of outermost angle brackets, and of D's template arguments, by `…`. Operators keep their brackets.
pub fn collapse_templates(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut depth = 0_usize;
    // Open parentheses of template arguments of D.
    let mut arguments = 0_usize;
    for (at, char) in name.char_indices() {
        let operator = is_operator(&name[..at]);
        match char {
            '(' if arguments > 0 => arguments += 1,
            '(' if depth == 0 && opens_arguments(&name[..at]) => {
                out.push_str("(…");
                arguments = 1;
            }
            ')' if arguments > 0 => {
                arguments -= 1;
                if arguments == 0 {
                    out.push(')');
                }
            }
            _ if arguments > 0 => {}
            '<' if !operator => {
                if depth == 0 {
                    out.push_str("<…");
                }
                depth += 1;
            }
            '>' if depth > 0 && !operator && !name[..at].ends_with('-') => {
                depth -= 1;
                if depth == 0 {
                    out.push('>');
                }
            }
            _ if depth == 0 => out.push(char),
            _ => {}
        }
    }
    out
}

/// Whether a parenthesis after this text opens template arguments of D.
fn opens_arguments(before: &str) -> bool {
    before.ends_with('!') && !before.ends_with("operator!")
}

/// Whether the text so far ends in an operator's name that continues: `<<`, `->`, `<=>`.
fn is_operator(before: &str) -> bool {
    // No operator has more than three of these characters; a name may have millions.
    let signs =
        before.bytes().rev().take(3).take_while(|byte| matches!(byte, b'<' | b'>' | b'-' | b'=')).count();
    before[..before.len() - signs].ends_with("operator")
}

#[cfg(test)]
mod tests {
    use super::{cut_middle, shorten, without_parameters};

    #[test]
    fn long_names_lose_templates_first_and_then_their_middle() {
        let name = "std::vector<std::pair<int, char> >::push_back(std::pair<int, char> const&)";
        assert_eq!(shorten(name, 200), name);
        assert_eq!(shorten(name, 50), "std::vector<…>::push_back(std::pair<…> const&)");
        assert_eq!(shorten(name, 30), "std::vector<…>::push_back");
        assert_eq!(shorten(name, 20), "std::vect…:push_back");
        assert_eq!(shorten("A::operator<<(B<int, long> const&)", 30), "A::operator<<(B<…> const&)");
        assert_eq!(shorten("std.map!(f, Range!(int, (x))).popFront(int)", 30), "std.map!(…).popFront(int)");
        assert_eq!(cut_middle("abcdef", 0), "");
        assert_eq!(cut_middle("abcdef", 1), "…");
        assert_eq!(cut_middle("äöüßx", 4), "ä…ßx");
        assert_eq!(cut_middle("中文中文", 5), "中…文");
    }

    #[test]
    fn parameters_are_cut_from_what_demanglers_write() {
        for (name, short) in [
            ("main", "main"),
            ("walk(Node const*, int)", "walk"),
            ("f<g(int)>::h() const [clone .cold]", "f<g(int)>::h"),
            ("(anonymous namespace)::Loader::run(int)", "(anonymous namespace)::Loader::run"),
            ("std::function<void (int)>::operator()(int) const", "std::function<void (int)>::operator()"),
            ("operator()", "operator()"),
            (
                "worker(int, int)::{lambda(double)#1}::operator()(double) const",
                "worker(int, int)::{lambda(double)#1}::operator()",
            ),
            ("core::fmt::write", "core::fmt::write"),
            ("std::ostream::operator<<(int)", "std::ostream::operator<<"),
            ("bool operator< <A<int> >(A<int> const&)", "bool operator< <A<int> >"),
            ("B::operator<=>(B const&) const", "B::operator<=>"),
            ("<T as Trait>::method", "<T as Trait>::method"),
            ("A::operator->() const", "A::operator->"),
            ("[stack deeper than its copy]", "[stack deeper than its copy]"),
            ("weird)name", "weird)name"),
            ("std.iota!(ulong).Result", "std.iota!(ulong).Result"),
            ("std.sum!(std.map!(f))", "std.sum!(std.map!(f))"),
            ("A::operator!() const", "A::operator!"),
        ] {
            assert_eq!(without_parameters(name), short, "{name}");
        }
    }
}
