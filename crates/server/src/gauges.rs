//! The current findings as gauges, for Prometheus.
//!
//! Invariant: their number and the length of their labels are bounded, whatever the names in profiles are.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use plumb_documents::findings::Findings;
use plumb_store::Tenant;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Most findings of a tenant: the first ones in the order of the page.
const MOST: usize = 50;
/// Most characters of a label.
const LONGEST: usize = 120;

/// Labels of a finding.
#[derive(Clone, Debug, Hash, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct FindingLabels {
    tenant: String,
    service: String,
    kind: &'static str,
    subject: String,
}

/// Writes the findings of tenants in Prometheus' format.
pub(crate) fn encode(out: &mut String, tenants: &[(Tenant, Arc<Findings>)]) -> fmt::Result {
    let mut registry = Registry::with_prefix("plumb");
    let gauges = Family::<FindingLabels, Gauge<f64, AtomicU64>>::default();
    let help =
        "Findings of the last hour: share of the finding in the service's time (or other value), 0 to 1";
    registry.register("finding", help, gauges.clone());
    for (tenant, findings) in tenants {
        let mut seen = BTreeSet::new();
        for one in &findings.findings {
            let labels = FindingLabels {
                tenant: tenant.to_string(),
                service: bounded(&one.service),
                kind: one.kind.word(),
                subject: bounded(&one.subject),
            };
            if seen.len() < MOST && seen.insert(labels.clone()) {
                gauges.get_or_create(&labels).set((one.share_percent / 100.0).clamp(0.0, 1.0));
            }
        }
    }
    text::encode_registry(out, &registry)
}

/// A text without its middle, if it is long.
fn bounded(text: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    if characters.len() <= LONGEST {
        return text.to_owned();
    }
    let (head, tail) = (LONGEST / 2, LONGEST - LONGEST / 2 - 1);
    let kept = characters[..head].iter().chain(&['…']).chain(&characters[characters.len() - tail..]);
    kept.collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use plumb_documents::findings::{Finding, FindingEvidence, FindingKind, FindingOwner};

    use super::*;

    fn finding(subject: &str) -> Finding {
        Finding {
            title: String::new(),
            subject: subject.to_owned(),
            kind: FindingKind::Change,
            service: "shop\n\"1\"".to_owned(),
            owner: FindingOwner::Service,
            share_percent: 12.5,
            cpu_ns: 1,
            of_machine_percent: None,
            period_ns: None,
            is_observed: false,
            evidence: FindingEvidence::default(),
            details: Vec::new(),
            remedy: None,
        }
    }

    fn encoded(subjects: &[String]) -> String {
        let findings = Findings {
            until_ms: 1,
            findings: subjects.iter().map(|subject| finding(subject)).collect(),
            ..Findings::default()
        };
        let mut out = String::new();
        encode(&mut out, &[(Tenant::default(), Arc::new(findings))]).unwrap();
        out
    }

    #[test]
    fn a_finding_is_a_gauge_with_escaped_labels() {
        let text = encoded(&["sort".to_owned(), "sort".to_owned()]);
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            lines,
            [r#"plumb_finding{tenant="anonymous",service="shop\n\"1\"",kind="change",subject="sort"} 0.125"#]
        );
    }

    #[test]
    fn number_and_length_are_bounded() {
        let long = |number: usize| format!("{number}{}{number}", "ä".repeat(5000));
        let text = encoded(&(0..200).map(long).collect::<Vec<_>>());
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(lines.len(), MOST);
        assert!(lines.iter().all(|line| line.chars().count() < 250 && line.contains('…')), "{}", lines[0]);
    }
}
