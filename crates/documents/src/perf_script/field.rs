//! The fields of `-F`.

use std::fmt;
use std::str::FromStr;

/// A field of a sample or its frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Field {
    Comm,
    Tid,
    Pid,
    Time,
    Cpu,
    Event,
    Ip,
    Sym,
    SymOff,
    Dso,
    SrcLine,
    Period,
}

/// The fields by their names.
const NAMES: [(&str, Field); 12] = [
    ("comm", Field::Comm),
    ("tid", Field::Tid),
    ("pid", Field::Pid),
    ("time", Field::Time),
    ("cpu", Field::Cpu),
    ("event", Field::Event),
    ("ip", Field::Ip),
    ("sym", Field::Sym),
    ("symoff", Field::SymOff),
    ("dso", Field::Dso),
    ("srcline", Field::SrcLine),
    ("period", Field::Period),
];

/// A set of fields: those that are printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fields(u16);

impl Fields {
    pub(super) fn has(self, field: Field) -> bool {
        self.0 & (1 << field as u16) != 0
    }

    /// Whether frames are printed.
    pub(super) fn has_stack(self) -> bool {
        [Field::Ip, Field::Sym, Field::Dso, Field::SrcLine].into_iter().any(|field| self.has(field))
    }

    fn set(&mut self, field: Field, on: bool) {
        let bit = 1 << field as u16;
        if on { self.0 |= bit } else { self.0 &= !bit }
    }
}

/// perf's default for clock events: all fields except the process ID and the source line.
impl Default for Fields {
    fn default() -> Self {
        let mut fields = Fields(0);
        for (_, field) in NAMES {
            fields.set(field, !matches!(field, Field::Pid | Field::SrcLine));
        }
        fields
    }
}

impl FromStr for Fields {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let changes = |name: &str| name.starts_with(['+', '-']);
        let names: Vec<&str> = text.split(',').map(str::trim).collect();
        let all_change = names.iter().all(|name| changes(name));
        if !all_change && names.iter().any(|name| changes(name)) {
            return Err("either all fields have + or - before them, or none".into());
        }
        let mut fields = if all_change { Fields::default() } else { Fields(0) };
        for name in names {
            let plain = name.trim_start_matches(['+', '-']);
            let Some((_, field)) = NAMES.into_iter().find(|(known, _)| *known == plain) else {
                let known: Vec<_> = NAMES.iter().map(|(name, _)| *name).collect();
                return Err(format!("unknown field `{plain}`; known fields: {}", known.join(", ")));
            };
            fields.set(field, !name.starts_with('-'));
        }
        Ok(fields)
    }
}

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> =
            NAMES.iter().filter(|(_, field)| self.has(*field)).map(|(name, _)| *name).collect();
        f.write_str(&names.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_named_or_change_the_default() {
        let shown = |text: &str| text.parse::<Fields>().map(|fields| fields.to_string());
        assert_eq!(shown("time,ip").unwrap(), "time,ip");
        assert_eq!(shown("+pid,-symoff").unwrap(), "comm,tid,pid,time,cpu,event,ip,sym,dso,period");
        assert_eq!(shown(&Fields::default().to_string()).unwrap(), Fields::default().to_string());
        for bad in ["", "tyme", "+pid,ip"] {
            assert!(shown(bad).is_err(), "{bad}");
        }
    }
}
