//! Names of functions, as demanglers write them.

/// The name without its parameter list and what follows it: `walk(Node const*)` is `walk`,
/// `f<g(int)>::h() const [clone .cold]` is `f<g(int)>::h`. Names without a parameter list stay as they are.
pub fn without_parameters(name: &str) -> &str {
    let mut depth = 0_usize;
    let mut open = 0;
    let mut best = None;
    for (at, byte) in name.bytes().enumerate() {
        match byte {
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
                if depth == 0 && byte == b')' && !name[open..=at].starts_with("(anonymous namespace)") {
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

#[cfg(test)]
mod tests {
    use super::without_parameters;

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
            ("<T as Trait>::method", "<T as Trait>::method"),
            ("A::operator->() const", "A::operator->"),
            ("[stack deeper than its copy]", "[stack deeper than its copy]"),
            ("weird)name", "weird)name"),
        ] {
            assert_eq!(without_parameters(name), short, "{name}");
        }
    }
}
