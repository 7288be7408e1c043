//! Escapes names in text: characters that control a terminal or hide the content of a line are written so that they can be read back.
//!
//! An escape is `\xHH` for an ASCII character that is neither a letter nor a digit, and `\u{H}` for any other [unsafe](is_unsafe) one.
//! A backslash is escaped only if the text after it looks like such an escape, so that nearly all names are unchanged.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character is unsafe in a line of text: it moves a terminal's cursor, breaks the line, changes the direction of the text
/// or is invisible (Unicode categories Cc, Zl and Zp, and those of Cf without a shape).
pub fn is_unsafe(character: char) -> bool {
    match character {
        '\0'..='\u{7e}' => character.is_ascii_control(),
        '\u{7f}'..='\u{9f}' => true,
        // Fast path for most text.
        '\u{a0}'..='\u{ac}' => false,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}' => true,
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{fff9}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' => true,
        '\u{e0000}'..='\u{e007f}' => true,
        _ => false,
    }
}

/// Replaces [unsafe](is_unsafe) characters by U+FFFD: for people, who need not read the text back.
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.contains(is_unsafe) { text.replace(is_unsafe, "\u{fffd}").into() } else { text.into() }
}

/// Escapes a text for one line; [`unescaped`] reverses this. `also` selects further ASCII characters with a meaning
/// in the output; it must not select letters or digits.
pub fn escaped(text: &str, also: impl Fn(usize, char) -> bool) -> Cow<'_, str> {
    let escapes = |at: usize, character: char| {
        is_unsafe(character)
            || (character == '\\' && escape(&text[at..]).is_some())
            || (has_short_escape(character) && also(at, character))
    };
    let Some(first) = text.char_indices().find(|&(at, character)| escapes(at, character)) else {
        return text.into();
    };
    let mut out = String::with_capacity(text.len() + 8);
    out.push_str(&text[..first.0]);
    for (at, character) in text[first.0..].char_indices().map(|(at, character)| (at + first.0, character)) {
        if !escapes(at, character) {
            out.push(character);
        } else if character.is_ascii() {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\x{:02x}", u32::from(character));
        } else {
            let _ = write!(out, "\\u{{{:x}}}", u32::from(character));
        }
    }
    out.into()
}

/// Reverses [`escaped`]. Invalid escapes stay as they are.
pub fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let (character, length) = escape(&rest[at..]).unwrap_or(('\\', 1));
        out.push(character);
        rest = &rest[at + length..];
    }
    out.push_str(rest);
    out.into()
}

fn has_short_escape(character: char) -> bool {
    character.is_ascii() && !character.is_ascii_alphanumeric()
}

/// Returns the character of the escape at the start of the text, and the escape's length.
fn escape(text: &str) -> Option<(char, usize)> {
    let number = |digits: &str| {
        let is_ours = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        digits.bytes().all(is_ours).then(|| u32::from_str_radix(digits, 16).ok())?.and_then(char::from_u32)
    };
    if let Some(rest) = text.strip_prefix("\\x") {
        let character = number(rest.get(..2)?)?;
        return has_short_escape(character).then_some((character, 4));
    }
    let rest = text.strip_prefix("\\u{")?;
    // Longer ones are not characters.
    let end = rest.bytes().take(7).position(|byte| byte == b'}')?;
    let character = number(&rest[..end]).filter(|_| !rest.starts_with('0'))?;
    (!character.is_ascii() && is_unsafe(character)).then_some((character, end + 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_escaped_comes_back() {
        for text in [
            "",
            "main",
            "std::map<int, char>::operator[](int const&)",
            "a;b",
            "\x1b[2J\x1b]0;title\x07",
            "two\nlines\r\t",
            "\u{202e}txet\u{202c}",
            "C:\\x86\\new",
            "\\x1b is what is meant",
            "\\\\x3b\\x3",
            "\\u{202e} \\u{0202e} \\u{41} \\u{",
            "zero\u{200b}width\u{feff}\u{e0041}",
            "ünï中文🎉",
            "\u{9b}31m",
            "\\",
        ] {
            let escaped = escaped(text, |_, character| character == ';');
            assert!(!escaped.contains(|one| is_unsafe(one) || one == ';'), "{escaped:?}");
            assert_eq!(unescaped(&escaped), text, "{escaped}");
        }
    }

    #[test]
    fn ordinary_names_stay_as_they_are() {
        for text in
            ["operator\\", "C:\\Program Files\\node.exe", "f(int)::{lambda()#1}", "naïve", "\\xzz", "\\u{41}"]
        {
            assert_eq!(escaped(text, |_, _| false), text);
            assert_eq!(unescaped(text), text);
        }
        assert_eq!(escaped("a\x1b;\u{202e}", |_, one| one == ';'), "a\\x1b\\x3b\\u{202e}");
        assert_eq!(printable("a\nb\u{202e}"), "a\u{fffd}b\u{fffd}");
    }
}
