//! Capabilities of the agent: checks those that it needs, and drops all others.
//!
//! Capabilities belong to a thread, and a new thread inherits those of its creator: drop them before other threads exist.

use std::fs::File;
use std::os::fd::AsFd;

use plumb_process::{CAP_CHECKPOINT_RESTORE, CAP_PERFMON, CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_SYSLOG, Host};
use rustix::thread::{CapabilitySet, CapabilitySets, LinkNameSpaceType, move_into_link_name_space};

use crate::error::AgentError;

/// Bit and name of each capability that the agent requires.
const NEEDED: [(u32, &str); 3] = [
    (plumb_capture_bpf::CAP_BPF, "CAP_BPF"),
    (CAP_PERFMON, "CAP_PERFMON"),
    (CAP_SYS_PTRACE, "CAP_SYS_PTRACE"),
];

/// Capabilities that the agent keeps. CAP_SYSLOG is for names of kernel functions, which the kernel hides without it if `kernel.kptr_restrict` or
/// `kernel.perf_event_paranoid` are strict. CAP_CHECKPOINT_RESTORE (Linux 5.9) allows following the links of /proc/PID/map_files. These lead to files
/// without a path: libraries that were replaced while a program runs, and those in directories that only their user can enter.
const KEPT: CapabilitySet = CapabilitySet::BPF
    .union(CapabilitySet::PERFMON)
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::SYSLOG)
    .union(CapabilitySet::CHECKPOINT_RESTORE);

/// Capabilities that this process lacks for profiling a whole machine.
pub fn missing_capabilities() -> Vec<&'static str> {
    missing(&Host::read())
}

/// Capabilities that `host` lacks for profiling a whole machine.
pub(crate) fn missing(host: &Host) -> Vec<&'static str> {
    let has = |(bit, _): &(u32, &str)| {
        // Before Linux 5.8, CAP_SYS_ADMIN covered these; it still includes them.
        let is_included = *bit != CAP_SYS_PTRACE && host.has(CAP_SYS_ADMIN);
        host.has(*bit) || is_included
    };
    NEEDED.iter().filter(|needed| !has(needed)).map(|&(_, name)| name).collect()
}

/// Describes what profiles will lack because optional capabilities are missing.
pub(crate) fn shortcomings(host: &Host) -> Vec<&'static str> {
    // As in kallsyms_show_value in kernel/ksyms_common.c.
    let kernel_names = match (host.kptr_restrict, host.paranoid) {
        (Some(..=0), Some(..=1)) => None,
        (Some(..=1), _) if host.has(CAP_SYSLOG) => None,
        (Some(..=1), _) => Some("kernel functions have no names: they take CAP_SYSLOG"),
        (Some(_), _) => Some("kernel functions have no names; to get them: sysctl kernel.kptr_restrict=1"),
        (None, _) => None,
    };
    let has_files = host.has(CAP_CHECKPOINT_RESTORE) || host.has(CAP_SYS_ADMIN);
    let files = (!has_files).then_some(
        "stacks end in libraries that were replaced while their program runs, and in those in a folder that is their user's alone: such files \
         take CAP_CHECKPOINT_RESTORE",
    );
    kernel_names.into_iter().chain(files).collect()
}

/// Makes paths of control groups relative to the machine's root from now on. In a container they are relative to the container's own group, which
/// is then empty itself, and those of others depend on its position.
///
/// Requires CAP_SYS_ADMIN; without it paths stay as they are. Applies to this thread and those that it starts.
fn see_whole_cgroup_paths() {
    let space = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/cgroup"));
    if !matches!((space("self"), space("1")), (Ok(own), Ok(first)) if own != first) {
        return;
    }
    let join = |first: File| move_into_link_name_space(first.as_fd(), Some(LinkNameSpaceType::ControlGroup));
    // Otherwise paths are still reported, but shorter.
    let _ = File::open("/proc/1/ns/cgroup").map(join);
}

/// The capabilities that an agent keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetainedCapabilities {
    /// The set that suffices on most machines.
    Minimal,
    /// CAP_SYS_ADMIN as well, because the process lacks CAP_BPF and CAP_PERFMON, which came with Linux 5.8.
    SysAdminInstead,
    /// CAP_SYS_ADMIN as well, because the kernel refuses perf events without it: Debian's and Ubuntu's do if `kernel.perf_event_paranoid` is above 2,
    /// which is the default there.
    SysAdminForPerf,
}

/// Permanently drops all capabilities of this thread except those that an agent needs; it cannot start a program that has more. Work that requires
/// the others is done before.
///
/// # Errors
/// The kernel refuses to drop them.
pub fn drop_capabilities() -> Result<RetainedCapabilities, AgentError> {
    see_whole_cgroup_paths();
    let failed = |error: rustix::io::Errno| {
        AgentError::System("cannot drop the capabilities that are not needed", error.into())
    };
    rustix::thread::set_no_new_privs(true).map_err(failed)?;
    let sets = rustix::thread::capabilities(None).map_err(failed)?;
    let admin = KEPT | CapabilitySet::SYS_ADMIN;
    let keep = |effective: CapabilitySet, permitted: CapabilitySet| {
        let (effective, permitted) = (sets.effective & effective, sets.permitted & permitted);
        let inheritable = CapabilitySet::empty();
        rustix::thread::set_capabilities(None, CapabilitySets { effective, permitted, inheritable })
            .map_err(failed)
    };
    bound(admin);
    keep(KEPT, admin)?;
    let without = plumb_capture_perf::try_own_thread().is_ok();
    keep(admin, admin)?;
    let with = without || plumb_capture_perf::try_own_thread().is_ok();
    let retained = retained(sets.permitted, (without, with));
    if retained == RetainedCapabilities::Minimal {
        keep(KEPT, KEPT)?;
    }
    Ok(retained)
}

/// Takes all other capabilities out of the bounding set and the ambient set, so that no program that is started ever has them. Takes CAP_SETPCAP;
/// without it, programs that are started have none of them either (no_new_privs).
fn bound(kept: CapabilitySet) {
    let _ = rustix::thread::clear_ambient_capability_set();
    for one in (0..u64::BITS).map(|bit| CapabilitySet::from_bits_retain(1 << bit)) {
        if !kept.contains(one) && rustix::thread::capability_is_in_bounding_set(one).unwrap_or(false) {
            let _ = rustix::thread::remove_capability_from_bounding_set(one);
        }
    }
}

/// The set to keep, given whether perf events are allowed without CAP_SYS_ADMIN and with it.
fn retained(permitted: CapabilitySet, allowed: (bool, bool)) -> RetainedCapabilities {
    match allowed {
        _ if !permitted.contains(CapabilitySet::SYS_ADMIN) => RetainedCapabilities::Minimal,
        _ if !permitted.contains(CapabilitySet::BPF | CapabilitySet::PERFMON) => {
            RetainedCapabilities::SysAdminInstead
        }
        (false, true) => RetainedCapabilities::SysAdminForPerf,
        _ => RetainedCapabilities::Minimal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admin_is_kept_only_where_nothing_works_without() {
        let new = KEPT | CapabilitySet::SYS_ADMIN;
        let old = CapabilitySet::SYS_PTRACE | CapabilitySet::SYS_ADMIN;
        assert_eq!(retained(new, (true, true)), RetainedCapabilities::Minimal);
        assert_eq!(retained(new, (false, true)), RetainedCapabilities::SysAdminForPerf);
        assert_eq!(retained(new, (false, false)), RetainedCapabilities::Minimal, "it would not help");
        assert_eq!(retained(old, (true, true)), RetainedCapabilities::SysAdminInstead);
        assert_eq!(retained(KEPT, (false, true)), RetainedCapabilities::Minimal);
    }

    #[test]
    fn what_profiles_lack_is_said() {
        let host = |kptr_restrict, paranoid, bits: &[u32]| Host {
            kptr_restrict: Some(kptr_restrict),
            paranoid: Some(paranoid),
            capabilities: bits.iter().fold(0, |all, bit| all | 1 << bit),
            ..Host::default()
        };
        let all = [CAP_SYSLOG, CAP_CHECKPOINT_RESTORE];
        assert!(shortcomings(&host(1, 2, &all)).is_empty());
        assert!(shortcomings(&host(0, 1, &all[1..])).is_empty());
        let said = shortcomings(&host(0, 2, &[CAP_SYS_ADMIN]));
        assert!(said.len() == 1 && said[0].contains("CAP_SYSLOG"), "{said:?}");
        assert!(shortcomings(&host(2, 2, &all))[0].contains("kptr_restrict=1"));
        assert!(shortcomings(&host(1, 2, &all[..1]))[0].contains("CAP_CHECKPOINT_RESTORE"));
    }

    #[test]
    fn capabilities_that_are_missing_are_named() {
        let host = |bits: &[u32]| Host {
            capabilities: bits.iter().fold(0, |all, bit| all | 1 << bit),
            ..Host::default()
        };
        assert_eq!(missing(&host(&[])), ["CAP_BPF", "CAP_PERFMON", "CAP_SYS_PTRACE"]);
        assert_eq!(missing(&host(&[38, 39])), ["CAP_SYS_PTRACE"]);
        assert_eq!(missing(&host(&[CAP_SYS_ADMIN])), ["CAP_SYS_PTRACE"]);
        assert!(missing(&host(&[19, 38, 39])).is_empty());
    }
}
