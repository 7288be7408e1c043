//! The finding that a newer version of a service is dearer.

use super::{Finding, FindingKind, ServiceFacts, of_values, short};

/// A function that takes more in a newer version of a service.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServiceChange {
    /// Profile type of the values.
    pub profile_type: String,
    /// The label that tells the version; `None`: the build id of a file.
    pub label: Option<&'static str>,
    /// The version before.
    pub before: String,
    /// The newer version.
    pub after: String,
    /// Start of the first profile of the newer version, as text.
    pub since: String,
    /// The function.
    pub function: String,
    /// A caller of it with as large a difference.
    pub caller: Option<String>,
    /// Factor by which it takes more for the same load, and its 95% interval; `None`: it has no values in the version before.
    pub times: Option<[f64; 3]>,
    /// Part of the service's values that it has now.
    pub share: f64,
    /// Values that all instances have more, in a nanosecond.
    pub more_per_ns: f64,
    /// Time for which the newer version was recorded, in nanoseconds.
    pub lasted_ns: u64,
}

/// Returns the finding about a change.
pub fn of_change(change: &ServiceChange, facts: &ServiceFacts) -> Finding {
    let what = match change.label {
        Some("container_image_name") => "image",
        Some(_) => "version",
        None => "build",
    };
    let called =
        change.caller.as_ref().map_or_else(String::new, |caller| format!(", called by {}", short(caller)));
    let name = short(&change.function);
    let (kind, more) = more(change);
    let comma = if called.is_empty() || !kind.is_empty() { "" } else { "," };
    let increase = match change.times {
        Some(times) => {
            let [times, low, high] = times.map(|times| 100.0 * (times - 1.0));
            format!("+{times:.0}% ({low:.0}–{high:.0}), {more} more")
        }
        None => format!("is new, {more}"),
    };
    let title = format!("{what} {}: {name}{called}{kind}{comma} {increase}", change.after);
    let value = change.more_per_ns * change.lasted_ns as f64;
    let values = (&*change.profile_type, 100.0 * change.share, value);
    let subject = format!("{what} {}: {name}{kind}", change.after);
    let mut found = of_values(facts, FindingKind::Change, [subject, title], values);
    found.evidence.function = Some(change.function.clone());
    found.details.push(format!("Since {}; before it {what} {}.", change.since, change.before));
    found.details.push("For the same load, which is taken from the other functions.".to_owned());
    found.remedy =
        Some("compare the two versions, function by function, and read what was changed in it".into());
    found
}

/// Words for the kind of a change's values, and for how many there are more.
fn more(change: &ServiceChange) -> (String, String) {
    let mut parts = change.profile_type.split(':');
    let (name, unit) = (parts.next().unwrap_or_default(), parts.nth(1).unwrap_or_default());
    let per_second = change.more_per_ns * 1e9;
    match (name, unit) {
        ("process_cpu", "nanoseconds") => (String::new(), format!("{:.2} processors", change.more_per_ns)),
        (name, "nanoseconds") => {
            (format!(", {}", name.replace('_', " ")), format!("{:.2} s a second", change.more_per_ns))
        }
        (name, "bytes") => {
            (format!(", {}", name.replace('_', " ")), format!("{:.1} MB a second", per_second / 1e6))
        }
        (name, _) => (format!(", {}", name.replace('_', " ")), format!("{per_second:.1} a second")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::FindingOwner;

    #[test]
    fn a_change_says_what_how_much_and_since_when() {
        let change = ServiceChange {
            profile_type: "process_cpu:cpu:nanoseconds:cpu:nanoseconds".to_owned(),
            label: Some("service_version"),
            before: "1.0".to_owned(),
            after: "1.1".to_owned(),
            since: "2026-11-28 10:00 UTC".to_owned(),
            function: "price_basket(int)".to_owned(),
            caller: Some("handle".to_owned()),
            times: Some([1.38, 1.31, 1.45]),
            share: 0.4,
            more_per_ns: 0.4,
            lasted_ns: 60_000_000_000,
        };
        let facts = ServiceFacts {
            service: "shop".to_owned(),
            machine_ns: Some(240_000_000_000),
            ..ServiceFacts::default()
        };
        let found = of_change(&change, &facts);
        assert_eq!(
            found.title,
            "version 1.1: price_basket, called by handle, +38% (31–45), 0.40 processors more"
        );
        assert_eq!(found.subject, "version 1.1: price_basket");
        assert_eq!((found.cpu_ns, found.of_machine_percent), (24_000_000_000, Some(10.0)));
        assert_eq!((found.owner, found.kind), (FindingOwner::Service, FindingKind::Change));
        assert!(found.details[0].contains("2026-11-28 10:00"), "{:?}", found.details);
        let new = ServiceChange { times: None, ..change.clone() };
        assert_eq!(
            of_change(&new, &facts).title,
            "version 1.1: price_basket, called by handle, is new, 0.40 processors"
        );
        let waits = ServiceChange {
            profile_type: "off_cpu:off_cpu:nanoseconds::".to_owned(),
            label: None,
            caller: None,
            after: "ab12".to_owned(),
            ..change
        };
        assert_eq!(
            of_change(&waits, &facts).title,
            "build ab12: price_basket, off cpu +38% (31–45), 0.40 s a second more"
        );
    }
}
