//! Demangling of D's linkage names (<https://dlang.org/spec/abi.html#name_mangling>).
//!
//! Names are hostile: the number of parsing steps, their nesting and the output are bounded, and back references point
//! backwards only.

mod values;

use super::{MAX_DEPTH, MAX_NAME};

/// Most parsing steps for one name: back references can repeat what they refer to exponentially often.
const MAX_STEPS: u32 = 1 << 15;

/// Returns the readable form of a D linkage name, optionally with `parameters`, or `None` if it is not one.
pub(super) fn demangle(name: &str, parameters: bool) -> Option<String> {
    if name == "_Dmain" {
        return Some("D main".to_owned());
    }
    let mut parser = Parser { name, at: 0, out: String::new(), depth: 0, steps: 0, parameters };
    parser.mangled_name()?;
    (parser.at == name.len()).then_some(parser.out)
}

struct Parser<'a> {
    name: &'a str,
    at: usize,
    out: String,
    depth: u32,
    steps: u32,
    parameters: bool,
}

impl Parser<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.name.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    fn next(&mut self) -> Option<u8> {
        let byte = *self.name.as_bytes().get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = self.name.as_bytes()[self.at..].starts_with(text.as_bytes());
        self.at += if found { text.len() } else { 0 };
        found
    }

    fn put(&mut self, text: &str) -> Option<()> {
        (self.out.len() + text.len() <= MAX_NAME).then(|| self.out.push_str(text))
    }

    /// Runs one parsing step, unless the name has taken too many or they are nested too deeply.
    fn step(&mut self, parse: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        self.steps += 1;
        if self.steps > MAX_STEPS || self.depth >= MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let done = parse(self);
        self.depth -= 1;
        done
    }

    /// Runs `parse` and returns its output apart.
    fn apart(&mut self, parse: impl FnOnce(&mut Self) -> Option<()>) -> Option<String> {
        let start = self.out.len();
        parse(self)?;
        Some(self.out.split_off(start))
    }

    fn number(&mut self) -> Option<usize> {
        let digits = self.digits();
        digits.parse().ok()
    }

    fn digits(&mut self) -> String {
        let start = self.at;
        while self.peek(0).is_ascii_digit() {
            self.at += 1;
        }
        self.name[start..self.at].to_owned()
    }

    /// Reads a back reference and returns the position that it refers to.
    fn reference(&mut self) -> Option<usize> {
        let start = self.at;
        self.eat("Q").then_some(())?;
        let mut distance = 0_usize;
        loop {
            let byte = self.next()?;
            let (digit, last) = match byte {
                b'A'..=b'Z' => (byte - b'A', false),
                b'a'..=b'z' => (byte - b'a', true),
                _ => return None,
            };
            distance = distance.checked_mul(26)?.checked_add(usize::from(digit))?;
            if last {
                return start.checked_sub(distance).filter(|&to| to < start);
            }
        }
    }

    /// Parses with `parse` at the position of the back reference that follows.
    fn referred(&mut self, parse: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        let to = self.reference()?;
        let back = std::mem::replace(&mut self.at, to);
        parse(self)?;
        self.at = back;
        Some(())
    }

    /// Whether a name of a symbol follows.
    fn is_symbol(&mut self) -> bool {
        let start = self.at;
        let referred = self.reference().is_some_and(|to| self.name.as_bytes()[to].is_ascii_digit());
        self.at = start;
        referred || self.peek(0).is_ascii_digit() || self.is_template()
    }

    fn is_template(&self) -> bool {
        self.peek(0) == b'_' && self.peek(1) == b'_' && matches!(self.peek(2), b'T' | b'U')
    }

    fn is_function(&self, ahead: usize) -> bool {
        matches!(self.peek(ahead), b'F' | b'U' | b'V' | b'W' | b'R' | b'Y')
    }

    fn mangled_name(&mut self) -> Option<()> {
        (self.eat("_D") && self.is_symbol()).then_some(())?;
        self.qualified(true)?;
        if self.eat("Z") {
            return Some(());
        }
        self.apart(Self::data_type).map(drop)
    }

    fn qualified(&mut self, qualifiers: bool) -> Option<()> {
        self.step(|parser| {
            let begin = parser.out.len();
            while parser.is_symbol() {
                if parser.eat("0") {
                    continue;
                }
                if parser.out.len() > begin {
                    parser.put(".")?;
                }
                parser.identifier(begin)?;
                let (at, length) = (parser.at, parser.out.len());
                let method = parser.eat("M");
                if !(method || parser.is_function(0)) {
                    continue;
                }
                let parsed = parser.parameter_list(method, qualifiers);
                // Parameters without a type after them belong to something else.
                if parsed.is_none() || parser.at == parser.name.len() {
                    parser.at = at;
                    parser.out.truncate(length);
                    break;
                }
                if !parser.parameters {
                    parser.out.truncate(length);
                }
            }
            (parser.out.len() > begin).then_some(())
        })
    }

    fn parameter_list(&mut self, method: bool, qualifiers: bool) -> Option<()> {
        let qualified = if method { self.apart(Self::qualifiers)? } else { String::new() };
        self.apart(Self::convention)?;
        self.apart(Self::attributes)?;
        self.arguments()?;
        self.put(if qualifiers { &qualified } else { "" })
    }

    fn identifier(&mut self, begin: usize) -> Option<()> {
        self.step(|parser| {
            if parser.peek(0) == b'Q' {
                return parser.referred(|parser| parser.identifier(begin));
            }
            if parser.is_template() {
                return parser.template(begin);
            }
            let length = parser.number().filter(|&length| length > 0)?;
            let end = parser.at.checked_add(length)?;
            let name = parser.name.get(parser.at..end)?;
            if parser.is_template() && length >= 5 {
                parser.template(begin)?;
                return (parser.at == end).then_some(());
            }
            parser.at = end;
            // A parent that only makes the names of a function's declarations unique.
            if name.len() > 3
                && name.starts_with("__S")
                && name[3..].bytes().all(|byte| byte.is_ascii_digit())
            {
                return parser.identifier(begin);
            }
            let special = match name {
                "__ctor" => return parser.put("this"),
                "__dtor" => return parser.put("~this"),
                "__postblit" if parser.eat("MFZ") => return parser.put("this(this)"),
                "__init" => "initializer for ",
                "__vtbl" => "vtable for ",
                "__Class" => "ClassInfo for ",
                "__Interface" => "Interface for ",
                "__ModuleInfo" => "ModuleInfo for ",
                _ => return parser.put(name),
            };
            if parser.peek(0) != b'Z' {
                return parser.put(name);
            }
            parser.out.ends_with('.').then(|| parser.out.pop());
            let of = parser.out.split_off(begin);
            parser.put(special)?;
            parser.put(&of)
        })
    }

    fn template(&mut self, begin: usize) -> Option<()> {
        self.at += 3;
        self.identifier(begin)?;
        self.put("!(")?;
        let mut first = true;
        while !self.eat("Z") {
            self.separate(&mut first)?;
            self.eat("H");
            match self.next()? {
                b'S' => self.symbol_argument()?,
                b'T' => self.data_type()?,
                b'V' => {
                    let start = self.at;
                    let kind = if self.peek(0) == b'Q' { self.reference()? } else { start };
                    self.at = start;
                    let kind = *self.name.as_bytes().get(kind)?;
                    let name = self.apart(Self::data_type)?;
                    self.value(kind, &name)?;
                }
                b'X' => {
                    let length = self.number()?;
                    let end = self.at.checked_add(length)?;
                    let name = self.name.get(self.at..end)?;
                    self.at = end;
                    self.put(name)?;
                }
                _ => return None,
            }
        }
        self.put(")")
    }

    fn separate(&mut self, first: &mut bool) -> Option<()> {
        if std::mem::take(first) { Some(()) } else { self.put(", ") }
    }

    fn symbol_argument(&mut self) -> Option<()> {
        if self.peek(0) == b'_' && self.peek(1) == b'D' { self.mangled_name() } else { self.qualified(false) }
    }

    fn qualifiers(&mut self) -> Option<()> {
        loop {
            match self.peek(0) {
                b'x' | b'y' => {
                    let text = if self.next()? == b'x' { " const" } else { " immutable" };
                    return self.put(text);
                }
                b'O' => self.put(" shared")?,
                b'N' if self.peek(1) == b'g' => {
                    self.at += 1;
                    self.put(" inout")?;
                }
                _ => return Some(()),
            }
            self.at += 1;
        }
    }

    fn convention(&mut self) -> Option<()> {
        let text = match self.next()? {
            b'F' => "",
            b'U' => "extern(C) ",
            b'W' => "extern(Windows) ",
            b'V' => "extern(Pascal) ",
            b'R' => "extern(C++) ",
            b'Y' => "extern(Objective-C) ",
            _ => return None,
        };
        self.put(text)
    }

    fn attributes(&mut self) -> Option<()> {
        while self.peek(0) == b'N' {
            let text = match self.peek(1) {
                b'a' => "pure ",
                b'b' => "nothrow ",
                b'c' => "ref ",
                b'd' => "@property ",
                b'e' => "@trusted ",
                b'f' => "@safe ",
                b'i' => "@nogc ",
                b'j' => "return ",
                b'l' => "scope ",
                b'm' => "@live ",
                // Of the first parameter.
                b'g' | b'h' | b'k' | b'n' => return Some(()),
                _ => return None,
            };
            self.at += 2;
            self.put(text)?;
        }
        Some(())
    }

    fn arguments(&mut self) -> Option<()> {
        self.put("(")?;
        let mut first = true;
        loop {
            if self.eat("Z") {
                return self.put(")");
            }
            if self.eat("X") {
                return self.put("...)");
            }
            self.separate(&mut first)?;
            if self.eat("Y") {
                return self.put("...)");
            }
            loop {
                let text = match self.peek(0) {
                    b'M' => "scope ",
                    b'N' if self.peek(1) == b'k' => "return ",
                    b'I' => "in ",
                    b'J' => "out ",
                    b'K' => "ref ",
                    b'L' => "lazy ",
                    _ => break,
                };
                self.at += if text == "return " { 2 } else { 1 };
                self.put(text)?;
            }
            self.data_type()?;
        }
    }

    fn wrapped(&mut self, open: &str, close: &str) -> Option<()> {
        self.put(open)?;
        self.data_type()?;
        self.put(close)
    }

    fn function_type(&mut self) -> Option<()> {
        self.convention()?;
        let attributes = self.apart(Self::attributes)?;
        let arguments = self.apart(Self::arguments)?;
        self.data_type()?;
        self.put(&arguments)?;
        self.put(" ")?;
        self.put(&attributes)
    }

    fn data_type(&mut self) -> Option<()> {
        self.step(|parser| {
            if parser.is_function(0) || (parser.peek(0) == b'P' && parser.is_function(1)) {
                parser.eat("P");
                parser.function_type()?;
                return parser.put("function");
            }
            if parser.peek(0) == b'Q' {
                return parser.referred(Self::data_type);
            }
            match parser.next()? {
                b'O' => parser.wrapped("shared(", ")"),
                b'x' => parser.wrapped("const(", ")"),
                b'y' => parser.wrapped("immutable(", ")"),
                b'N' => match parser.next()? {
                    b'g' => parser.wrapped("inout(", ")"),
                    b'h' => parser.wrapped("__vector(", ")"),
                    b'n' => parser.put("typeof(*null)"),
                    _ => None,
                },
                b'A' => parser.wrapped("", "[]"),
                b'P' => parser.wrapped("", "*"),
                b'G' => {
                    let length = parser.digits();
                    parser.wrapped("", &format!("[{length}]"))
                }
                b'H' => {
                    let key = parser.apart(Self::data_type)?;
                    parser.wrapped("", &format!("[{key}]"))
                }
                b'C' | b'S' | b'E' | b'T' | b'I' => parser.qualified(false),
                b'D' => {
                    let qualifiers = parser.apart(Self::qualifiers)?;
                    if parser.peek(0) == b'Q' {
                        parser.referred(Self::function_type)?;
                    } else {
                        parser.function_type()?;
                    }
                    parser.put("delegate")?;
                    parser.put(&qualifiers)
                }
                b'B' => {
                    let count = parser.number()?;
                    parser.put("Tuple!(")?;
                    parser.list(count, Self::data_type)?;
                    parser.put(")")
                }
                b'z' if parser.eat("i") => parser.put("cent"),
                b'z' if parser.eat("k") => parser.put("ucent"),
                letter => parser.put(basic_type(letter)?),
            }
        })
    }
}

fn basic_type(letter: u8) -> Option<&'static str> {
    const TYPES: [(u8, &str); 23] = [
        (b'n', "typeof(null)"),
        (b'v', "void"),
        (b'g', "byte"),
        (b'h', "ubyte"),
        (b's', "short"),
        (b't', "ushort"),
        (b'i', "int"),
        (b'k', "uint"),
        (b'l', "long"),
        (b'm', "ulong"),
        (b'f', "float"),
        (b'd', "double"),
        (b'e', "real"),
        (b'o', "ifloat"),
        (b'p', "idouble"),
        (b'j', "ireal"),
        (b'q', "cfloat"),
        (b'r', "cdouble"),
        (b'c', "creal"),
        (b'b', "bool"),
        (b'a', "char"),
        (b'u', "wchar"),
        (b'w', "dchar"),
    ];
    TYPES.iter().find(|(mangled, _)| *mangled == letter).map(|&(_, name)| name)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use plumb_fixtures::{Requirement, needs_command};

    use super::demangle;

    /// Names that Debian's libraries of LDC export, drawn at random.
    const NAMES: &str = include_str!("dlang_names.txt");

    #[test]
    fn names_are_those_that_binutils_shows() {
        if !needs_command(Requirement::Cc, "c++filt") {
            return;
        }
        let names: Vec<&str> = NAMES.lines().collect();
        let shown = Command::new("c++filt").args(["-s", "dlang"]).args(&names).output().unwrap().stdout;
        let shown = String::from_utf8(shown).unwrap();
        let mut count = 0;
        for (name, shown) in names.iter().zip(shown.lines()) {
            assert_eq!(demangle(name, true).as_deref(), Some(shown), "{name}");
            count += 1;
        }
        assert_eq!(count, names.len());
    }

    #[test]
    fn changed_names_end() {
        let name = "_D3std3uni__T11TrieBuilderTbTwVii1114112TSQBoQBn__T9sliceBitsVmi13Vmi21ZQvTSQCwQCv__TQBiVmi7Vmi13ZQBv\
            ZQEl6__ctorMFNaNbNcNebZSQFtQFs";
        for at in 0..name.len() {
            for byte in "_0129AaBCDFGHKMNPQSTVXZyzé".chars() {
                let changed = format!("{}{byte}{}", &name[..at], &name[at + 1..]);
                let _ = (demangle(&changed, false), demangle(&changed, true), demangle(&name[..at], true));
            }
        }
        // Each tuple repeats the one before it twice.
        let doubling = format!("_D1aB2i{}", "B2QdQf".repeat(40));
        assert_eq!(demangle(&doubling, true), None);
        assert_eq!(demangle(&format!("_D1a{}i", "P".repeat(60_000)), true), None);
    }
}
