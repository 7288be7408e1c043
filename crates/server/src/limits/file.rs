//! Lines of the file of limits: `TENANT NAME=VALUE …`.

use std::collections::BTreeMap;
use std::time::Duration;

use plumb_store::Tenant;

/// Name of the line of all other tenants; no tenant can have it.
const OTHERS: &str = "*";
/// Value of a limit that does not apply.
const NONE: &str = "none";

/// Limits of a tenant; `None`: unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TenantLimit {
    /// Age up to which profiles are kept.
    pub retention: Option<Duration>,
    /// Bytes of blocks.
    pub max_bytes: Option<u64>,
    /// Bytes of profiles, as sent, a second.
    pub rate: Option<u64>,
}

/// Limits of all tenants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LimitTable {
    pub by_tenant: BTreeMap<Tenant, TenantLimit>,
    /// Limits of each tenant without a line.
    pub others: TenantLimit,
}

/// A limit as a line has it: not named, `none`, or a value.
type Named<T> = Option<Option<T>>;

/// Limits that a line names.
#[derive(Clone, Copy, Debug, Default)]
struct LimitLine {
    retention: Named<Duration>,
    max_bytes: Named<u64>,
    rate: Named<u64>,
}

impl LimitTable {
    /// Parses the lines. Returns `None` if there are none; the error is a line number and the reason.
    pub fn parse(text: &str) -> Result<Option<Self>, (usize, String)> {
        let (mut others, mut lines) = (None, BTreeMap::new());
        for (number, line) in text.lines().enumerate() {
            let wrong = |why: String| (number + 1, why);
            let mut words = line.split_whitespace();
            let Some(name) = words.next().filter(|name| !name.starts_with('#')) else { continue };
            let limits = LimitLine::parse(words).map_err(wrong)?;
            let is_first = if name == OTHERS {
                others.replace(limits).is_none()
            } else {
                let tenant = Tenant::new(name).map_err(|error| wrong(error.to_string()))?;
                lines.insert(tenant, limits).is_none()
            };
            if !is_first {
                return Err(wrong(format!("{name} has a line already")));
            }
        }
        if others.is_none() && lines.is_empty() {
            return Ok(None);
        }
        let others = others.unwrap_or_default().over(TenantLimit::default());
        let by_tenant = lines.into_iter().map(|(tenant, line)| (tenant, line.over(others))).collect();
        Ok(Some(Self { by_tenant, others }))
    }
}

impl LimitLine {
    fn parse<'w>(words: impl Iterator<Item = &'w str>) -> Result<Self, String> {
        let mut line = Self::default();
        for word in words {
            let (name, value) = word.split_once('=').ok_or_else(|| format!("{word:?} has no value"))?;
            let is_first = match name {
                "retention" => line.retention.replace(limit(name, value, age)?).is_none(),
                "max_size" => line.max_bytes.replace(limit(name, value, size)?).is_none(),
                "rate" => line.rate.replace(limit(name, value, size)?).is_none(),
                _ => return Err(format!("unknown limit {name:?}; limits are retention, max_size and rate")),
            };
            if !is_first {
                return Err(format!("{name} is there twice"));
            }
        }
        Ok(line)
    }

    /// These limits, and those of `others` for limits that are not named.
    fn over(self, others: TenantLimit) -> TenantLimit {
        TenantLimit {
            retention: self.retention.unwrap_or(others.retention),
            max_bytes: self.max_bytes.unwrap_or(others.max_bytes),
            rate: self.rate.unwrap_or(others.rate),
        }
    }
}

fn limit<T>(
    name: &str,
    value: &str,
    parse: fn(&str) -> Result<T, &'static str>,
) -> Result<Option<T>, String> {
    if value == NONE {
        return Ok(None);
    }
    parse(value).map(Some).map_err(|expected| format!("{name}={value}: expected {expected}, or {NONE}"))
}

fn age(text: &str) -> Result<Duration, &'static str> {
    let age = humantime::parse_duration(text).ok().filter(|age| !age.is_zero());
    age.ok_or("a time such as 12h or 30d")
}

fn size(text: &str) -> Result<u64, &'static str> {
    let expected = "a size such as 512K or 10G";
    let end = text.find(|one: char| !one.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(expected),
    };
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    bytes.filter(|&bytes| bytes > 0).ok_or(expected)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    #[test]
    fn a_limit_that_a_line_does_not_name_is_that_of_all_others() {
        let text =
            "# limits\n\nshop retention=7d rate=512K\nmail max_size=none\n* retention=30d max_size=10G\n";
        let table = LimitTable::parse(text).unwrap().unwrap();
        let day = Duration::from_secs(86_400);
        let others = TenantLimit { retention: Some(day * 30), max_bytes: Some(10 << 30), rate: None };
        assert_eq!(table.others, others);
        let of = |name: &str| table.by_tenant[&Tenant::new(name).unwrap()];
        assert_eq!(of("shop"), TenantLimit { retention: Some(day * 7), rate: Some(512 << 10), ..others });
        assert_eq!(of("mail"), TenantLimit { max_bytes: None, ..others });
        assert_eq!(LimitTable::parse("* \n").unwrap(), Some(LimitTable::default()));
        assert_eq!(LimitTable::parse("# nothing\n").unwrap(), None);
    }

    #[test]
    fn a_wrong_line_is_named() {
        for (line, why) in [
            ("shop 7d", "\"7d\" has no value"),
            ("shop quota=7", "unknown limit \"quota\""),
            ("shop retention=7", "retention=7: expected a time"),
            ("shop retention=0s", "expected a time"),
            ("shop max_size=0", "max_size=0: expected a size"),
            ("shop rate=1.5M", "rate=1.5M: expected a size"),
            ("shop rate=99999999999T", "expected a size"),
            ("shop rate=1K rate=2K", "rate is there twice"),
            ("../x rate=1K", "invalid tenant"),
            ("first", "first has a line already"),
        ] {
            let (number, found) = LimitTable::parse(&format!("first\n{line}")).unwrap_err();
            assert!(number == 2 && found.contains(why), "{line}: {found}");
        }
    }
}
