//! A set of named values, and the macros that define lists of such sets.
//!
//! Elsewhere: the sets themselves.

use std::fmt::Write as _;

/// A set of named values.
#[derive(Debug)]
pub struct Set {
    /// Name of the set in `kinds.txt`.
    pub(crate) name: &'static str,
    /// The bits that hold one of `values`; the others hold `flags`.
    pub(super) mask: u64,
    pub(super) values: &'static [(&'static str, u64)],
    /// Flags of several bits come before the flags that they include.
    pub(super) flags: &'static [(&'static str, u64)],
}

impl Set {
    /// The value of a name.
    pub(crate) fn value(&self, name: &str) -> Option<u64> {
        self.values.iter().chain(self.flags).find(|(known, _)| *known == name).map(|&(_, value)| value)
    }

    /// Appends a value of `bits` bits by its names; a part without a name is written as a number.
    pub fn write(&self, value: u64, bits: u32, out: &mut String) {
        let width = if bits < 64 { (1 << bits) - 1 } else { u64::MAX };
        let held = value & self.mask & width;
        let name = self.values.iter().find(|(_, known)| known & width == held).map(|(name, _)| *name);
        let mut rest = value & !self.mask & width;
        let begin = out.len();
        // A word of only flags, with none of them set, is zero.
        if let Some(name) = name.filter(|_| held != 0 || rest == 0 || self.says_zero()) {
            out.push_str(name);
        } else if held != 0 {
            rest |= held;
        }
        for (name, flag) in self.flags {
            let flag = flag & width;
            if flag != 0 && rest & flag == flag {
                separate(begin, out);
                out.push_str(name);
                rest &= !flag;
            }
        }
        if rest != 0 || out.len() == begin {
            separate(begin, out);
            let _ = if rest < 10 || self.flags.is_empty() && rest >> 32 == 0 {
                // A number of an enumeration may be negative.
                if bits == 32 { write!(out, "{}", rest as u32 as i32) } else { write!(out, "{rest}") }
            } else {
                write!(out, "{rest:#x}")
            };
        }
    }

    /// Whether a zero value is written before flags (`O_RDONLY|O_CLOEXEC`).
    fn says_zero(&self) -> bool {
        self.values.len() > 1 && self.values.iter().any(|(_, value)| *value == 0)
    }
}

fn separate(begin: usize, out: &mut String) {
    if out.len() > begin {
        out.push('|');
    }
}

/// Defines a list of sets: `enum NAME { values }`, `flags NAME { flags }` or `mixed NAME MASK { values } { flags }`. The names are those
/// of constants in scope.
macro_rules! sets {
    ($($kind:ident $name:ident $($mask:ident)? { $($first:ident)* } $({ $($second:ident)* })?)*) => {
        pub(super) const SETS: &[$crate::sets::Set] = &[$(
            $crate::sets::set!($kind $name $($mask)? { $($first)* } $({ $($second)* })?)
        ),*];
    };
}

macro_rules! named {
    ($($name:ident)*) => { &[$((stringify!($name), $name as i64 as u64)),*] };
}

macro_rules! set {
    (enum $name:ident { $($value:ident)* }) => {
        $crate::sets::Set {
            name: stringify!($name), mask: u64::MAX, values: $crate::sets::named!($($value)*), flags: &[],
        }
    };
    (flags $name:ident { $($flag:ident)* }) => {
        $crate::sets::Set {
            name: stringify!($name), mask: 0, values: &[], flags: $crate::sets::named!($($flag)*),
        }
    };
    (mixed $name:ident $mask:ident { $($value:ident)* } { $($flag:ident)* }) => {
        $crate::sets::Set {
            name: stringify!($name),
            mask: $mask as i64 as u64,
            values: $crate::sets::named!($($value)*),
            flags: $crate::sets::named!($($flag)*),
        }
    };
}

pub(super) use {named, set, sets};
