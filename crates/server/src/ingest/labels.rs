//! Labels of a series as sent by a client: checked, without those of interest only to the client, and completed.

use plumb_store::{Labels, NAME, SERVICE};

use crate::error::ApiError;
use crate::options::IngestLimits;

/// A copy of the service's name, by which Pyroscope finds services.
const SERVICE_COPY: &str = "__service_name__";

/// Labels by which clients identify their runs and kinds of profiles: they would create a series per run.
const OF_CLIENTS: [&str; 3] = ["__session_id__", "__delta__", "__order__"];

/// Labels of samples with a value per request to a service: each would create a series.
const IDS: [&str; 5] = ["profile_id", "span_id", "span_name", "trace_id", "pyroscope.profile.id"];

/// Reads the labels of a series. Profile kind and service are required.
pub(crate) fn series_labels<'l>(
    pairs: impl Iterator<Item = (&'l str, &'l str)>,
    limits: &IngestLimits,
) -> Result<Labels, ApiError> {
    let mut labels = Labels::default();
    for (name, value) in pairs {
        if OF_CLIENTS.contains(&name) {
            continue;
        }
        let name = checked(name, value, limits)?;
        if labels.get(&name).is_some() {
            return Err(ApiError::invalid(format!("duplicate label name {name:?} in {labels}")));
        }
        labels.set(name, value);
    }
    complete(labels, limits)
}

/// Adds derived labels.
fn complete(mut labels: Labels, limits: &IngestLimits) -> Result<Labels, ApiError> {
    if labels.get(NAME).is_none() {
        return Err(ApiError::invalid(format!(
            "the label {NAME} is missing, which names the kind of profile, such as process_cpu, in {labels}"
        )));
    }
    let Some(service) = labels.get(SERVICE).map(str::to_owned) else {
        return Err(ApiError::invalid(format!("the label {SERVICE} is missing in {labels}")));
    };
    if labels.len() > limits.labels {
        let (count, most) = (labels.len(), limits.labels);
        return Err(ApiError::invalid(format!(
            "profile series {labels} has {count} label names; limit {most}"
        )));
    }
    labels.set(SERVICE_COPY, service);
    Ok(labels)
}

/// Adds the labels of a sample; those of the series take precedence.
pub(crate) fn with_sample_labels<'l>(
    series: &Labels,
    pairs: impl Iterator<Item = (&'l str, &'l str)>,
    limits: &IngestLimits,
) -> Result<Labels, ApiError> {
    let mut labels = series.clone();
    for (name, value) in pairs {
        if IDS.contains(&name) || OF_CLIENTS.contains(&name) {
            continue;
        }
        let name = checked(name, value, limits)?;
        if labels.get(&name).is_none() {
            labels.set(name, value);
        }
    }
    complete(labels, limits)
}

/// A label's name with dots replaced, as queries can't contain them.
fn checked(name: &str, value: &str, limits: &IngestLimits) -> Result<String, ApiError> {
    if name.len() > limits.label_name {
        let start: String = name.chars().take(40).collect();
        return Err(ApiError::invalid(format!(
            "label name too long: {start:?}...; limit {}",
            limits.label_name
        )));
    }
    if value.len() > limits.label_value {
        let (length, most) = (value.len(), limits.label_value);
        return Err(ApiError::invalid(format!(
            "value of label {name:?} too long: {length} bytes; limit {most}"
        )));
    }
    let name = name.replace(['.', '-', '/', ' '], "_");
    let is_part = |one: char| one.is_ascii_alphanumeric() || one == '_';
    let begins = name.chars().next().is_some_and(|first| !first.is_ascii_digit());
    if !begins || !name.chars().all(is_part) {
        return Err(ApiError::invalid(format!("invalid label name {name:?}: use letters, digits and _")));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<String, String> {
        let labels = series_labels(pairs.iter().copied(), &IngestLimits::default());
        labels.map(|labels| labels.to_string()).map_err(|error| error.message)
    }

    #[test]
    fn labels_are_checked_and_completed() {
        let (name, service) = ((NAME, "process_cpu"), (SERVICE, "api"));
        let labels =
            read(&[name, service, ("k8s.pod", "a"), ("__session_id__", "1"), ("empty", "")]).unwrap();
        assert_eq!(
            labels,
            r#"{__name__="process_cpu", __service_name__="api", k8s_pod="a", service_name="api"}"#
        );
        assert!(read(&[service]).unwrap_err().contains("__name__ is missing"));
        assert!(read(&[name]).unwrap_err().contains("service_name is missing"));
        assert!(read(&[name, service, ("a", "1"), ("a", "2")]).unwrap_err().contains("duplicate"));
        assert!(read(&[name, service, ("a b!", "1")]).unwrap_err().contains("invalid label name"));
        assert!(read(&[name, service, ("a", &"x".repeat(3000))]).unwrap_err().contains("too long"));
        let many: Vec<(String, String)> = (0..70).map(|n| (format!("l{n}"), "x".into())).collect();
        let many = [name, service].into_iter().chain(many.iter().map(|(a, b)| (&**a, &**b)));
        let error = series_labels(many, &IngestLimits::default()).unwrap_err();
        assert!(error.message.contains("72 label names; limit 64"), "{error}");
    }
}
