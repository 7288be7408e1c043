//! Messages in the format of Alertmanager's webhooks, version 4, which chat bridges and incident tools read.
//!
//! <https://prometheus.io/docs/alerting/latest/configuration/#webhook_config>

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, Utc};
use form_urlencoded::Serializer;
use plumb_documents::findings::Finding;
use plumb_store::Tenant;
use serde::Serialize;

use super::states::{Changes, Occurrence};

/// Name of all alerts.
const ALERT: &str = "PlumbFinding";
/// Name of the sender among an Alertmanager's receivers.
const RECEIVER: &str = "plumb";
/// Most alerts of a message.
const ALERTS: usize = 50;
/// Alertmanager's end of an alert that lasts.
const NEVER: &str = "0001-01-01T00:00:00Z";

/// Labels or annotations by their names.
type Texts = BTreeMap<&'static str, String>;

/// A message.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Message {
    version: &'static str,
    group_key: String,
    truncated_alerts: usize,
    status: Status,
    receiver: &'static str,
    group_labels: Texts,
    common_labels: Texts,
    common_annotations: Texts,
    #[serde(rename = "externalURL")]
    external_url: String,
    alerts: Vec<Alert>,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Firing,
    Resolved,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Alert {
    status: Status,
    labels: Texts,
    annotations: Texts,
    starts_at: String,
    ends_at: String,
    #[serde(rename = "generatorURL")]
    generator_url: String,
    fingerprint: String,
}

/// The messages about the changes of a tenant: those that begin, then those that end. `url`: of the page, without a slash at its end. `range`: the
/// evaluated time, in milliseconds since 1970.
pub(super) fn messages(tenant: &Tenant, changes: &Changes, url: &str, range: (i64, i64)) -> Vec<Message> {
    let of = |occurrences: &[Occurrence], status| -> Vec<Message> {
        let alert = |one: &Occurrence| alert(tenant, one, status, (url, range));
        occurrences
            .chunks(ALERTS)
            .map(|part| message(tenant, status, url, part.iter().map(alert).collect()))
            .collect()
    };
    let begun = of(&changes.begun, Status::Firing);
    begun.into_iter().chain(of(&changes.ended, Status::Resolved)).collect()
}

fn message(tenant: &Tenant, status: Status, url: &str, alerts: Vec<Alert>) -> Message {
    let group_labels = Texts::from([("alertname", ALERT.to_owned()), ("tenant", tenant.to_string())]);
    Message {
        version: "4",
        group_key: format!("{{}}:{{alertname=\"{ALERT}\", tenant=\"{tenant}\"}}"),
        truncated_alerts: 0,
        status,
        receiver: RECEIVER,
        group_labels,
        common_labels: common(alerts.iter().map(|alert| &alert.labels)),
        common_annotations: common(alerts.iter().map(|alert| &alert.annotations)),
        external_url: url.to_owned(),
        alerts,
    }
}

/// The texts that all have.
fn common<'a>(mut all: impl Iterator<Item = &'a Texts>) -> Texts {
    let mut common = all.next().cloned().unwrap_or_default();
    all.for_each(|texts| common.retain(|name, text| texts.get(name) == Some(text)));
    common
}

fn alert(tenant: &Tenant, one: &Occurrence, status: Status, (url, range): (&str, (i64, i64))) -> Alert {
    let Finding { title, subject, kind, service, details, remedy, .. } = &one.finding;
    let labels = Texts::from([
        ("alertname", ALERT.to_owned()),
        ("tenant", tenant.to_string()),
        ("service", service.clone()),
        ("kind", kind.word().to_owned()),
        ("subject", subject.clone()),
    ]);
    let mut annotations = Texts::from([("summary", format!("{service}: {title}"))]);
    if !details.is_empty() {
        annotations.insert("description", details.join(" "));
    }
    annotations.extend(remedy.iter().map(|remedy| ("remedy", remedy.to_string())));
    Alert {
        status,
        fingerprint: format!("{:016x}", fingerprint(&labels)),
        labels,
        annotations,
        starts_at: time(one.since_ms),
        ends_at: one.ended_ms.map_or_else(|| NEVER.to_owned(), time),
        generator_url: view(&one.finding, url, range),
    }
}

/// The URL of the view of the page that shows a finding.
fn view(finding: &Finding, url: &str, (from, until): (i64, i64)) -> String {
    let mut words = Serializer::new(String::new());
    words.append_pair("service", &finding.service);
    words.append_pair("type", &finding.evidence.profile_type);
    words.append_pair("from", &from.to_string()).append_pair("until", &until.to_string());
    words.append_pair("view", "flame");
    if let Some(function) = &finding.evidence.function {
        words.append_pair("focus", &exactly(function));
    }
    format!("{url}/?{}", words.finish())
}

/// A regular expression that matches only this name, as the page makes it.
fn exactly(name: &str) -> String {
    let mut pattern = String::from("^");
    for one in name.chars() {
        if ".*+?^${}()|[]\\/".contains(one) {
            pattern.push('\\');
        }
        pattern.push(one);
    }
    pattern + "$"
}

fn time(millis: i64) -> String {
    let time = DateTime::<Utc>::from_timestamp_millis(millis).unwrap_or_default();
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Alertmanager's fingerprint of labels: FNV-1a over names and values in order, each followed by a byte that is in no text.
fn fingerprint(labels: &Texts) -> u64 {
    let parts = labels.iter().flat_map(|(name, value)| [*name, value.as_str()]);
    let bytes = parts.flat_map(|part| part.bytes().chain([0xff]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
