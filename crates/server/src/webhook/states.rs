//! Findings that begin and end, from one evaluation to the next.
//!
//! Invariant: a finding begins once two evaluations in a row have it, and ends once two in a row do not: one near the threshold comes and goes.

use std::collections::{BTreeMap, BTreeSet};

use plumb_documents::findings::{BoundReason, Finding, FindingKind, Findings};

/// Identifies a finding: the service, the kind and the subject.
type Identity = (String, FindingKind, String);

/// A finding that has begun or ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Occurrence {
    pub finding: Finding,
    /// Time of the first evaluation that had it, in milliseconds since 1970.
    pub since_ms: i64,
    /// Time of the first evaluation without it.
    pub ended_ms: Option<i64>,
}

/// Findings that have begun and those that have ended with an evaluation.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Changes {
    pub begun: Vec<Occurrence>,
    pub ended: Vec<Occurrence>,
}

/// A finding between evaluations. It is ending while its occurrence has an end.
#[derive(Debug)]
struct Entry {
    has_begun: bool,
    occurrence: Occurrence,
}

/// The findings of a tenant.
#[derive(Debug, Default)]
pub(super) struct FindingStates(BTreeMap<Identity, Entry>);

impl FindingStates {
    /// Takes the findings of an evaluation.
    pub fn evaluate(&mut self, findings: &Findings) -> Changes {
        let mut changes = Changes::default();
        let mut present = BTreeSet::new();
        for finding in &findings.findings {
            let identity = (finding.service.clone(), finding.kind, finding.subject.clone());
            if present.insert(identity.clone()) {
                changes.begun.extend(self.seen(identity, finding, findings.until_ms));
            }
        }
        let absent: Vec<Identity> = self
            .0
            .keys()
            .filter(|identity| !present.contains(*identity) && is_examined(findings, &identity.0))
            .cloned()
            .collect();
        for identity in absent {
            changes.ended.extend(self.missed(identity, findings.until_ms));
        }
        changes
    }

    /// Notes that an evaluation has a finding. Returns the finding if it begins with that.
    fn seen(&mut self, identity: Identity, finding: &Finding, now_ms: i64) -> Option<Occurrence> {
        let occurrence = Occurrence { finding: finding.clone(), since_ms: now_ms, ended_ms: None };
        let Some(entry) = self.0.get_mut(&identity) else {
            self.0.insert(identity, Entry { has_begun: false, occurrence });
            return None;
        };
        entry.occurrence = Occurrence { since_ms: entry.occurrence.since_ms, ..occurrence };
        let begins = !std::mem::replace(&mut entry.has_begun, true);
        begins.then(|| entry.occurrence.clone())
    }

    /// Notes that an evaluation lacks a finding. Returns the finding if it ends with that.
    fn missed(&mut self, identity: Identity, now_ms: i64) -> Option<Occurrence> {
        let entry = self.0.get_mut(&identity)?;
        if entry.has_begun && entry.occurrence.ended_ms.is_none() {
            entry.occurrence.ended_ms = Some(now_ms);
            return None;
        }
        let entry = self.0.remove(&identity)?;
        entry.has_begun.then_some(entry.occurrence)
    }
}

/// Whether an evaluation can lack a finding of a service: not if it ran out of time or memory before it came to the service.
fn is_examined(findings: &Findings, service: &str) -> bool {
    !findings.truncated.iter().any(|bound| match bound.reason {
        BoundReason::Time => true,
        BoundReason::Memory => bound.service.as_deref() == Some(service),
        BoundReason::Rows | BoundReason::Stacks | BoundReason::Samples => false,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use plumb_documents::findings::{AnswerBound, FindingEvidence, FindingOwner};

    use super::*;

    pub fn finding(service: &str, subject: &str) -> Finding {
        Finding {
            title: format!("{subject}: 50% of its CPU time"),
            subject: subject.to_owned(),
            kind: FindingKind::Function,
            service: service.to_owned(),
            owner: FindingOwner::Service,
            share_percent: 50.0,
            cpu_ns: 1,
            of_machine_percent: None,
            period_ns: None,
            is_observed: false,
            evidence: FindingEvidence::default(),
            details: Vec::new(),
            remedy: None,
        }
    }

    fn findings(until_ms: i64, subjects: &[&str]) -> Findings {
        Findings {
            until_ms,
            findings: subjects.iter().map(|subject| finding("shop", subject)).collect(),
            ..Findings::default()
        }
    }

    /// Subjects that begin and end with an evaluation, with the times of their beginning and end.
    fn evaluated(states: &mut FindingStates, findings: &Findings) -> Vec<(String, i64, Option<i64>)> {
        let Changes { begun, ended } = states.evaluate(findings);
        let all = begun.into_iter().chain(ended);
        all.map(|one| (one.finding.subject, one.since_ms, one.ended_ms)).collect()
    }

    #[test]
    fn two_evaluations_in_a_row_begin_and_end_a_finding() {
        let mut states = FindingStates::default();
        let mut at = |time, subjects: &[&str]| evaluated(&mut states, &findings(time, subjects));
        assert_eq!(at(1, &["sort", "parse"]), []);
        assert_eq!(at(2, &["sort"]), [("sort".to_owned(), 1, None)]);
        assert_eq!(at(3, &["parse"]), [], "one comes again, the other is gone for the first time");
        assert_eq!(at(4, &["sort"]), [], "it was gone once");
        assert_eq!(at(5, &["sort", "sort"]), [], "it has begun before");
        assert_eq!((at(6, &[]), at(7, &[])), (vec![], vec![("sort".to_owned(), 1, Some(6))]));
        assert_eq!((at(8, &["sort"]), at(9, &["sort"])), (vec![], vec![("sort".to_owned(), 8, None)]));
    }

    #[test]
    fn a_finding_that_was_not_looked_for_does_not_end() {
        let mut states = FindingStates::default();
        let _ = (1..3).map(|time| states.evaluate(&findings(time, &["sort"]))).count();
        let bounded = |time, bound| Findings { truncated: vec![bound], ..findings(time, &[]) };
        let late = || AnswerBound::new(BoundReason::Time, 1, 2);
        let large = |service| AnswerBound::new(BoundReason::Memory, 0, 1).of_service(service);
        for time in 3..6 {
            assert_eq!(evaluated(&mut states, &bounded(time, late())), []);
            assert_eq!(evaluated(&mut states, &bounded(time, large("shop"))), []);
        }
        assert_eq!(evaluated(&mut states, &bounded(6, large("mail"))), []);
        assert_eq!(evaluated(&mut states, &findings(7, &[])).len(), 1);
    }
}
