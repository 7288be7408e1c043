//! Values among the arguments of D's templates: numbers, characters, strings, arrays and structures.

use super::Parser;

impl Parser<'_> {
    /// Parses `count` items with `parse`, separated by commas in the output.
    pub(super) fn list(
        &mut self,
        count: usize,
        mut parse: impl FnMut(&mut Self) -> Option<()>,
    ) -> Option<()> {
        let mut first = true;
        (0..count).try_for_each(|_| {
            self.separate(&mut first)?;
            parse(self)
        })
    }

    /// Parses a value of a template's argument, whose type begins with `kind` and is called `name`.
    pub(super) fn value(&mut self, kind: u8, name: &str) -> Option<()> {
        self.step(|parser| match parser.peek(0) {
            b'0'..=b'9' => parser.integer(kind),
            b'f' => {
                parser.at += 1;
                parser.mangled_name()
            }
            _ => match parser.next()? {
                b'n' => parser.put("null"),
                b'N' => {
                    parser.put("-")?;
                    parser.integer(kind)
                }
                b'i' => parser.integer(kind),
                b'e' => parser.real(),
                b'c' => {
                    parser.real()?;
                    parser.put("+")?;
                    parser.eat("c").then_some(())?;
                    parser.real()?;
                    parser.put("i")
                }
                width @ (b'a' | b'w' | b'd') => parser.string(width),
                b'A' => {
                    let count = parser.number()?;
                    parser.put("[")?;
                    parser.list(count, |parser| {
                        parser.value(0, "")?;
                        if kind == b'H' {
                            parser.put(":")?;
                            parser.value(0, "")?;
                        }
                        Some(())
                    })?;
                    parser.put("]")
                }
                b'S' => {
                    let count = parser.number()?;
                    parser.put(name)?;
                    parser.put("(")?;
                    parser.list(count, |parser| parser.value(0, ""))?;
                    parser.put(")")
                }
                _ => None,
            },
        })
    }

    fn integer(&mut self, kind: u8) -> Option<()> {
        let digits = self.digits();
        let number: u64 = digits.parse().ok()?;
        let text = match kind {
            b'a' if (0x20..0x7f).contains(&number) => format!("'{}'", char::from(u8::try_from(number).ok()?)),
            b'a' => format!("'\\x{number:02x}'"),
            b'u' => format!("'\\u{number:04x}'"),
            b'w' => format!("'\\U{number:08x}'"),
            b'b' => (number != 0).to_string(),
            b'h' | b't' | b'k' => digits + "u",
            b'l' => digits + "L",
            b'm' => digits + "uL",
            _ => digits,
        };
        self.put(&text)
    }

    fn real(&mut self) -> Option<()> {
        for (mangled, text) in [("NAN", "NaN"), ("INF", "Inf"), ("NINF", "-Inf")] {
            if self.eat(mangled) {
                return self.put(text);
            }
        }
        let sign = if self.eat("N") { "-" } else { "" };
        let start = self.at;
        while self.peek(0).is_ascii_hexdigit() {
            self.at += 1;
        }
        let digits = self.name.get(start..self.at).filter(|digits| !digits.is_empty())?;
        self.eat("P").then_some(())?;
        let minus = if self.eat("N") { "-" } else { "" };
        let exponent = self.digits();
        self.put(&format!("{sign}0x{}.{}p{minus}{exponent}", &digits[..1], &digits[1..]))
    }

    fn string(&mut self, width: u8) -> Option<()> {
        let length = self.number()?;
        self.eat("_").then_some(())?;
        self.put("\"")?;
        for _ in 0..length {
            let byte = u8::from_str_radix(self.name.get(self.at..self.at + 2)?, 16).ok()?;
            self.at += 2;
            self.put(&match byte {
                b'\t' => "\\t".to_owned(),
                b'\n' => "\\n".to_owned(),
                b'\r' => "\\r".to_owned(),
                0x0c => "\\f".to_owned(),
                0x0b => "\\v".to_owned(),
                0x20..0x7f => char::from(byte).to_string(),
                _ => format!("\\x{byte:02x}"),
            })?;
        }
        self.put("\"")?;
        if width == b'a' { Some(()) } else { self.put(std::str::from_utf8(&[width]).ok()?) }
    }
}
