//! The order of findings. It is decided here alone: the server sends it, the page and `plumb query findings` display it unchanged.
//!
//! Findings are about the user's services. Kernel threads come after them, and plumb itself comes last: its time is a cost of profiling, which is
//! shown, but is not a finding. Either ranks with the services from [`LARGE`] percent of the machine on. Within a group what a newer version made
//! dearer comes first, as it can be taken back; then what comes and goes, as an average hides it, and what threads wait for. The other findings
//! are sorted by CPU time, multiplied by a [`factor`]: a habit or a cause can be acted on, a share only says where to look.
//!
//! Elsewhere: finding them.

use std::cmp::Reverse;

use plumb_profile::Profile;
use serde::Serialize;

use super::{Finding, FindingKind};

/// Share of the machine, in percent, from which kernel threads or plumb concern the user like a service.
const LARGE: f64 = 10.0;
/// Share of plumb's program in a service from which the service is plumb.
const OWN_SHARE: f64 = 0.5;
/// The service of kernel threads, as `plumb agent` names it.
const KERNEL_SERVICE: &str = "kernel";
/// Name of plumb's program.
const PROGRAM: &str = "plumb";

/// The owner of the CPU time in a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum FindingOwner {
    /// A user's service.
    #[default]
    Service,
    /// Kernel threads, which have no executable.
    Kernel,
    /// plumb's agent or server.
    Plumb,
}

impl FindingOwner {
    /// Returns the owner of a service: plumb if most of its time is below frames of plumb's program, whatever its unit or its pod is called.
    pub fn of(profile: &Profile, service: &str) -> Self {
        if service == KERNEL_SERVICE {
            return Self::Kernel;
        }
        let is_own = |path: &str| path.rsplit('/').next() == Some(PROGRAM);
        let own_dso = |frame| {
            profile.frames[frame].dso.is_some_and(|dso| is_own(profile.strings.get(profile.dsos[dso].path)))
        };
        let (mut all, mut own) = (0, 0);
        for sample in profile.samples.iter() {
            all += sample.weight;
            if profile.frames_of(sample.stack).any(own_dso) {
                own += sample.weight;
            }
        }
        if own > 0 && own as f64 >= OWN_SHARE * all as f64 { Self::Plumb } else { Self::Service }
    }
}

/// Sorts findings for display.
pub fn rank(findings: &mut [Finding]) {
    let group = |one: &Finding| match one.of_machine_percent {
        Some(share) if share >= LARGE => FindingOwner::Service,
        _ => one.owner,
    };
    // The sort is stable.
    let tier = |one: &Finding| match one.kind {
        FindingKind::Change => 0,
        FindingKind::Rhythm | FindingKind::Wait => 1,
        _ => 2,
    };
    let weight = |one: &Finding| Reverse((one.cpu_ns as f64 * factor(one)) as i64);
    findings.sort_by_key(|one| (group(one), tier(one), weight(one)));
}

/// Returns the factor on a finding's CPU time.
fn factor(finding: &Finding) -> f64 {
    // Both the interval and the activity are known.
    let habit = if finding.period_ns.is_some() && finding.is_observed { 4.0 } else { 1.0 };
    let remedy = if finding.remedy.is_some() { 2.0 } else { 1.0 };
    let named = if finding.kind == FindingKind::Service { 0.25 } else { 1.0 };
    habit * remedy * named
}

#[cfg(test)]
mod tests {
    use plumb_profile::{
        Address, AddressSpace, Dso, DsoKind, Event, Found, Frame, FrameKind, Process, Sample, Thread,
    };

    use super::*;
    use crate::findings::FindingEvidence;

    /// A function of a service with this CPU time, on a machine with a capacity of 10,000.
    fn finding(service: &str, owner: FindingOwner, cpu_ns: i64) -> Finding {
        Finding {
            title: String::new(),
            subject: String::new(),
            kind: FindingKind::Function,
            service: service.to_owned(),
            owner,
            share_percent: 50.0,
            cpu_ns,
            of_machine_percent: Some(cpu_ns as f64 / 100.0),
            period_ns: None,
            is_observed: false,
            evidence: FindingEvidence::default(),
            details: Vec::new(),
            remedy: None,
        }
    }

    fn order(mut findings: Vec<Finding>) -> Vec<String> {
        rank(&mut findings);
        findings.into_iter().map(|one| one.service).collect()
    }

    #[test]
    fn services_come_before_the_kernel_and_plumb_unless_these_take_much() {
        let [service, kernel, plumb] = [FindingOwner::Service, FindingOwner::Kernel, FindingOwner::Plumb];
        let found = vec![finding("p", plumb, 900), finding("k", kernel, 700), finding("s", service, 3)];
        assert_eq!(order(found), ["s", "k", "p"]);
        let found = vec![finding("p", plumb, 900), finding("k", kernel, 1000), finding("s", service, 999)];
        assert_eq!(order(found), ["k", "s", "p"]);
        let found = vec![finding("p", plumb, 1000), finding("k", kernel, 999), finding("s", service, 998)];
        assert_eq!(order(found), ["p", "s", "k"]);
        // If no agent reports the machine's capacity, no share of it is known to be large.
        let unknown = |one| Finding { of_machine_percent: None, ..one };
        let found = vec![unknown(finding("k", kernel, 9000)), unknown(finding("s", service, 1))];
        assert_eq!(order(found), ["s", "k"]);
    }

    #[test]
    fn what_can_be_acted_on_counts_more_than_a_share() {
        let of = |service: &str, cpu_ns| finding(service, FindingOwner::Service, cpu_ns);
        let habit = Finding { period_ns: Some(1_000_000_000), is_observed: true, ..of("habit", 30) };
        let period = Finding { period_ns: Some(1_000_000_000), ..of("period", 90) };
        let observed = Finding { is_observed: true, ..of("observed", 80) };
        let remedy = Finding { remedy: Some("do".into()), ..of("remedy", 55) };
        let whole = Finding { kind: FindingKind::Service, ..of("whole", 119) };
        let found = vec![whole.clone(), of("share", 31), period, observed, remedy, habit.clone()];
        assert_eq!(order(found), ["habit", "remedy", "period", "observed", "share", "whole"]);
        // The habit does not dominate: a service that takes most of the machine comes first.
        assert_eq!(order(vec![habit, of("large", 121), whole]), ["large", "habit", "whole"]);
    }

    /// A service with samples in programs, by their path and weight.
    fn samples(programs: &[(&str, u64)]) -> Profile {
        let mut profile = Profile::default();
        let (name, unit) = (profile.strings.add("cpu-clock"), profile.strings.add("ns"));
        let event = profile.events.push(Event { name, unit });
        let empty = profile.strings.empty();
        let process = profile.processes.push(Process { pid: 1, ppid: 0, exe: empty });
        let thread = profile.threads.push(Thread { process, tid: 1, comm: empty });
        for &(path, weight) in programs {
            let path = profile.strings.add(path);
            let (kind, addresses) = (DsoKind::File, AddressSpace::Svma);
            let dso = Some(profile.dsos.add(Dso { path, build_id: None, kind, addresses }));
            let (kind, address, found) = (FrameKind::User, Address(1), Found::Sampled);
            let frame = profile.frames.add(Frame { kind, dso, address, is_return: false, found });
            let stack = profile.add_stack(&[frame]);
            profile.samples.push(Sample { time_ns: 0, thread, cpu: 0, event, stack, syscall: None, weight });
        }
        profile
    }

    #[test]
    fn plumb_is_known_by_its_program_and_the_kernel_by_its_service() {
        let of = |programs: &[(&str, u64)], service| FindingOwner::of(&samples(programs), service);
        assert_eq!(of(&[("/usr/bin/plumb", 6), ("/lib/libc.so.6", 4)], "observability"), FindingOwner::Plumb);
        assert_eq!(of(&[("/usr/bin/plumb", 4), ("/bin/sh", 6)], "plumb"), FindingOwner::Service);
        assert_eq!(of(&[("/usr/bin/plumbing", 9)], "plumb"), FindingOwner::Service);
        assert_eq!(of(&[], "plumb"), FindingOwner::Service);
        assert_eq!(of(&[], "kernel"), FindingOwner::Kernel);
    }
}
