//! Formats bytes as quoted text, in C syntax.

use std::fmt::Write as _;

/// Appends bytes in quotes, with non-printable ones escaped. `is_cut`: the bytes are truncated.
pub fn quote(bytes: &[u8], is_cut: bool, out: &mut String) {
    out.push('"');
    let mut rest = bytes;
    loop {
        let (text, bad) = match std::str::from_utf8(rest) {
            Ok(text) => (text, 0),
            Err(error) => {
                let (good, _) = rest.split_at(error.valid_up_to());
                (
                    std::str::from_utf8(good).unwrap_or_default(),
                    error.error_len().unwrap_or(rest.len() - good.len()),
                )
            }
        };
        text.chars().for_each(|one| escape(one, out));
        let after = rest.get(text.len()..).unwrap_or_default();
        let (broken, after) = after.split_at(bad.min(after.len()));
        for byte in broken {
            let _ = write!(out, "\\{byte:o}");
        }
        rest = after;
        if bad == 0 {
            break;
        }
    }
    out.push('"');
    if is_cut {
        out.push_str("...");
    }
}

fn escape(one: char, out: &mut String) {
    match one {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\t' => out.push_str("\\t"),
        '\r' => out.push_str("\\r"),
        '\0' => out.push_str("\\0"),
        // Characters that hide text or change its direction must not reach a terminal.
        one if one.is_control()
            || matches!(one, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') =>
        {
            let mut bytes = [0; 4];
            for byte in one.encode_utf8(&mut bytes).bytes() {
                let _ = write!(out, "\\{byte:o}");
            }
        }
        one => out.push(one),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(bytes: &[u8], is_cut: bool) -> String {
        let mut out = String::new();
        quote(bytes, is_cut, &mut out);
        out
    }

    #[test]
    fn text_is_quoted_as_in_c() {
        assert_eq!(quoted(b"line\n\"two\"\\", false), r#""line\n\"two\"\\""#);
        assert_eq!(quoted(b"\x7fELF\x02\x01\0", true), r#""\177ELF\2\1\0"..."#);
        assert_eq!(quoted("größe".as_bytes(), false), "\"größe\"");
        assert_eq!(quoted(b"a\xff\xfeb", false), r#""a\377\376b""#);
        assert_eq!(quoted(&[b'x', 0xe2, 0x82], false), r#""x\342\202""#, "a character that is cut off");
        assert_eq!(quoted("\u{202e}x\u{1b}[2J".as_bytes(), false), r#""\342\200\256x\33[2J""#);
        assert_eq!(quoted(b"", false), "\"\"");
    }
}
