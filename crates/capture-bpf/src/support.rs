//! Whether the programs can run here, and if not, the obstacle.

use std::fmt;
use std::fs;
use std::path::Path;

use plumb_process::{CAP_PERFMON, CAP_SYS_ADMIN, Host};

use crate::btf::{self, Types};

/// Bit of CAP_BPF.
pub const CAP_BPF: u32 = 39;
/// Older kernels are not tried: they lack the programs' access to registers (bpf_task_pt_regs) and tasks.
const OLDEST: (u32, u32) = (5, 15);
/// The first kernel with all helpers.
const NEEDED: &str = "5.17";
/// Later helpers of the programs: their names in the kernel's types, and the version that introduced them. A distribution
/// may have backported them, so that the version does not decide.
const HELPERS: [(&str, &str, &str); 2] =
    [("BPF_FUNC_loop", "bpf_loop", "5.17"), ("BPF_FUNC_find_vma", "bpf_find_vma", "5.17")];
/// Inode of the initial PID namespace (PROC_PID_INIT_INO in include/linux/proc_ns.h).
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// The reason why the kernel can't unwind stacks here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsupported {
    /// The kernel is too old: its release.
    Kernel(String),
    /// The kernel does not expose its types.
    NoBtf,
    /// The kernel lacks a helper: its name, and the first kernel that has it.
    Helper(&'static str, &'static str),
    /// The recorder is in a user namespace, outside of which it has no privileges.
    UserNamespace,
    /// These capabilities are missing.
    Capabilities(Vec<&'static str>),
    /// The kernel is locked down.
    Lockdown,
    /// The recorder is in a PID namespace, whose process IDs differ from the kernel's.
    PidNamespace,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsupported::Kernel(release) => {
                write!(f, "BPF unwinding requires Linux {NEEDED} or newer, this is {release}")
            }
            Unsupported::NoBtf => {
                write!(
                    f,
                    "the kernel has no type information ({} is missing; CONFIG_DEBUG_INFO_BTF)",
                    btf::PATH
                )
            }
            Unsupported::Helper(name, since) => {
                write!(f, "the kernel has no {name}, which came with Linux {since}")
            }
            Unsupported::UserNamespace => {
                f.write_str("plumb runs in a user namespace: run plumb outside of it, as root")
            }
            Unsupported::Capabilities(names) => {
                write!(f, "this user lacks {}: run as root", names.join(" and "))
            }
            Unsupported::Lockdown => {
                f.write_str("the kernel is locked down to confidentiality (/sys/kernel/security/lockdown)")
            }
            Unsupported::PidNamespace => {
                f.write_str("plumb runs in a PID namespace and cannot see processes outside it: run plumb on the host (docker run --pid=host)")
            }
        }
    }
}

impl std::error::Error for Unsupported {}

/// Whether lockdown keeps the kernel's memory confidential. If its file is not mounted, the kernel command line decides.
fn is_confidential() -> bool {
    match fs::read_to_string("/sys/kernel/security/lockdown") {
        Ok(state) => state.contains("[confidentiality]"),
        Err(_) => fs::read_to_string("/proc/cmdline")
            .is_ok_and(|line| line.split_whitespace().any(|word| word == "lockdown=confidentiality")),
    }
}

/// Whether programs can be loaded, as far as known without trying.
pub fn support(host: &Host) -> Result<(), Unsupported> {
    if release(&host.kernel).is_none_or(|release| release < OLDEST) {
        return Err(Unsupported::Kernel(host.kernel.clone()));
    }
    if !Path::new(btf::PATH).exists() {
        return Err(Unsupported::NoBtf);
    }
    if host.is_in_user_namespace {
        return Err(Unsupported::UserNamespace);
    }
    let missing = missing(host);
    if !missing.is_empty() {
        return Err(Unsupported::Capabilities(missing));
    }
    if is_confidential() {
        return Err(Unsupported::Lockdown);
    }
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    if namespace != Path::new(FIRST_PID_NAMESPACE) {
        return Err(Unsupported::PidNamespace);
    }
    Ok(())
}

/// As [`support`], for this machine and including helpers, for which the kernel's types are read: some 30 ms. Missing capabilities are checked last, as
/// no other obstacle is removed by running as root.
pub fn support_here() -> Result<(), Unsupported> {
    let host = Host::read();
    support(&Host { capabilities: u64::MAX, ..host.clone() })?;
    let types = Types::read().map_err(|_| Unsupported::NoBtf)?;
    helpers(&types)?;
    support(&host)
}

/// Checks that the kernel has all helpers.
pub(crate) fn helpers(types: &Types) -> Result<(), Unsupported> {
    let found = types.have(HELPERS.map(|(name, _, _)| name));
    match HELPERS.iter().zip(found).find(|(_, found)| !found) {
        Some((&(_, name, since), _)) => Err(Unsupported::Helper(name, since)),
        None => Ok(()),
    }
}

fn missing(host: &Host) -> Vec<&'static str> {
    if host.has(CAP_SYS_ADMIN) {
        return Vec::new();
    }
    let wanted = [("CAP_BPF", CAP_BPF), ("CAP_PERFMON", CAP_PERFMON)];
    wanted.into_iter().filter(|&(_, bit)| !host.has(bit)).map(|(name, _)| name).collect()
}

fn release(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_is_in_the_way() {
        let host =
            |kernel: &str, capabilities: u64| Host { kernel: kernel.into(), capabilities, ..Host::default() };
        assert_eq!(
            support(&host("5.10.0-8-amd64", u64::MAX)),
            Err(Unsupported::Kernel("5.10.0-8-amd64".into()))
        );
        assert_eq!(support(&host("", u64::MAX)), Err(Unsupported::Kernel(String::new())));
        assert_eq!(missing(&host("6.18.1", 1 << CAP_PERFMON)), ["CAP_BPF"]);
        assert_eq!(missing(&host("6.18.1", 1 << CAP_SYS_ADMIN)), [""; 0]);
        assert_eq!(release("6.1.0-18-amd64"), Some((6, 1)));
        assert_eq!(release("6"), None);
    }
}
