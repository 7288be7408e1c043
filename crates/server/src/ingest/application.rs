//! Application names of the older API, `shop.cpu{region=eu}`, and the profile kind in the name's last part.

use plumb_store::{NAME, ProfileType, SERVICE};

use crate::error::ApiError;

/// An application's name with its labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Application {
    pub name: String,
    pub labels: Vec<(String, String)>,
}

impl Application {
    /// Reads `name{key=value,...}`.
    pub fn parse(text: &str) -> Result<Self, ApiError> {
        let (name, rest) = text.split_at(text.find('{').unwrap_or(text.len()));
        let name = name.trim();
        if name.is_empty() {
            return Err(ApiError::invalid("the parameter name is missing: write name=service{key=value}"));
        }
        let inner = rest.trim().trim_start_matches('{').trim_end_matches('}');
        let mut labels = Vec::new();
        for pair in inner.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let Some((key, value)) = pair.split_once('=') else {
                return Err(ApiError::invalid(format!(
                    "label {pair:?} of name has no value: write key=value"
                )));
            };
            let (key, value) = (key.trim(), value.trim().trim_matches('"'));
            // Names with this prefix are reserved.
            if !key.starts_with("__") {
                labels.push((key.to_owned(), value.to_owned()));
            }
        }
        Ok(Self { name: name.to_owned(), labels })
    }

    /// The labels of its series. If the labels name a service, the application's name becomes `app_name`.
    pub fn pairs(&self, kind: &str, service: &str, spy: &str) -> Vec<(String, String)> {
        let mut pairs = self.labels.clone();
        let has = |name: &str| self.labels.iter().any(|(known, _)| known == name);
        match (has(SERVICE), has("app_name")) {
            (false, _) => pairs.push((SERVICE.into(), service.into())),
            (true, false) => pairs.push(("app_name".into(), service.into())),
            (true, true) => {}
        }
        pairs.push((NAME.into(), kind.into()));
        pairs.push(("pyroscope_spy".into(), spy.into()));
        pairs
    }

    /// For formats with only stacks and counts: the service, the profile type, and the value of one count.
    pub fn kind(&self, sample_rate: u32) -> Result<(String, ProfileType, i64), ApiError> {
        let (service, suffix) = self.name.rsplit_once('.').unwrap_or((&self.name, "cpu"));
        let (name, sample_type, sample_unit) = match suffix {
            "cpu" | "itimer" => ("process_cpu", "cpu", "nanoseconds"),
            "wall" | "seconds" | "nanoseconds" | "microseconds" | "milliseconds" => {
                ("wall", "wall", "nanoseconds")
            }
            "inuse_objects" => ("memory", "inuse_objects", "count"),
            "inuse_space" => ("memory", "inuse_space", "bytes"),
            "alloc_objects" => ("memory", "alloc_objects", "count"),
            "alloc_space" => ("memory", "alloc_space", "bytes"),
            "alloc_in_new_tlab_objects" => ("memory", "alloc_in_new_tlab_objects", "count"),
            "alloc_in_new_tlab_bytes" => ("memory", "alloc_in_new_tlab_bytes", "bytes"),
            "alloc_outside_tlab_objects" => ("memory", "alloc_outside_tlab_objects", "count"),
            "alloc_outside_tlab_bytes" => ("memory", "alloc_outside_tlab_bytes", "bytes"),
            "live" => ("memory", "live", "count"),
            "bytes" => ("memory", "samples", "bytes"),
            "goroutines" => ("goroutine", "goroutines", "count"),
            "mutex_count" => ("mutex", "contentions", "count"),
            "mutex_duration" => ("mutex", "delay", "nanoseconds"),
            "block_count" | "lock_count" => ("block", "contentions", "count"),
            "block_duration" | "lock_duration" => ("block", "delay", "nanoseconds"),
            "exceptions" => ("exceptions", "samples", "count"),
            // The service's name has a dot, and no kind follows.
            _ => return Self { name: format!("{}.cpu", self.name), ..Self::default() }.kind(sample_rate),
        };
        let is_time = matches!(name, "process_cpu" | "wall");
        let factor = if is_time { 1_000_000_000 / i64::from(sample_rate.max(1)) } else { 1 };
        let (period_type, period_unit) = if is_time { ("cpu", "nanoseconds") } else { ("", "") };
        let kind = ProfileType {
            name: name.into(),
            sample_type: sample_type.into(),
            sample_unit: sample_unit.into(),
            period_type: period_type.into(),
            period_unit: period_unit.into(),
        };
        Ok((service.to_owned(), kind, factor))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::Application;

    #[test]
    fn names_say_service_labels_and_kind() {
        let one = Application::parse("shop.web.cpu{region=eu, pod=a-1,__session_id__=7}").unwrap();
        assert_eq!(one.labels, [("region".into(), "eu".into()), ("pod".into(), "a-1".into())]);
        let (service, kind, factor) = one.kind(100).unwrap();
        assert_eq!((service.as_str(), factor), ("shop.web", 10_000_000));
        assert_eq!(kind.to_string(), "process_cpu:cpu:nanoseconds:cpu:nanoseconds");
        let (service, kind, _) = Application::parse("shop.web").unwrap().kind(100).unwrap();
        assert_eq!((service.as_str(), kind.name.as_str()), ("shop.web", "process_cpu"));
        let (_, kind, factor) = Application::parse("shop.alloc_space{}").unwrap().kind(100).unwrap();
        assert_eq!((kind.sample_unit.as_str(), factor), ("bytes", 1));
        assert!(Application::parse("{a=b}").is_err() && Application::parse("a{b}").is_err());
    }
}
