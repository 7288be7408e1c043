//! Permissions and features of this machine for recording, found by trying, with remedies.

use std::fs;
use std::io;
use std::path::Path;

use plumb_capture_perf::{
    Abilities, CONTAINER_REMEDY, Named, Trigger, allows_own_processes, hardware_counters, try_counters,
};
use plumb_process::{CAP_PERFMON, CAP_SYS_ADMIN, Host, can_observe, setcap_perf};

use crate::facts::{CAPABILITIES, MachineFacts};
use crate::finding::Finding;
use crate::finding::FindingState::{self, Good, Limited, Missing};
use crate::{Diagnosis, features, uprobes};

/// The kernel's default limit, before slow interrupts lower it (kernel/events/core.c, DEFAULT_MAX_SAMPLE_RATE).
const DEFAULT_RATE: u32 = 100_000;

/// Checks the machine.
pub(super) fn diagnosis() -> Diagnosis {
    let host = Host::read();
    let abilities = Abilities::find(&host, true);
    let counted = try_counters(&host);
    let functions = functions();
    let (bpf, programs) = features::find(functions.state == Good);
    // One function per finding. BPF programs are checked in `features`.
    let mut findings = vec![
        permission(&host),
        capabilities(&host),
        own(&abilities.own, &host),
        kernel(&abilities.kernel),
        machine(&abilities.machine),
        cgroup(&abilities),
        counters(&counted, &host),
        rate(&host),
        symbols(&host),
        rings(&host),
        types(),
        tracepoints(),
        functions,
    ];
    findings.extend(architecture());
    findings.extend(uprobes::finding());
    findings.extend(bpf);
    let subject = format!(
        "{}: Linux {} {}, {} processors",
        host.name,
        host.kernel,
        std::env::consts::ARCH,
        host.cpus.len()
    );
    Diagnosis {
        host: Some(MachineFacts::find(&host, &abilities, &counted)),
        programs,
        ..Diagnosis::new(subject, findings)
    }
}

/// `None` where recording is supported.
fn architecture() -> Option<Finding> {
    let arch = std::env::consts::ARCH;
    can_observe().err().map(|_| {
        Finding::new(Missing, "architecture", format!("{arch}: plumb records on x86_64 and aarch64 only"))
    })
}

fn permission(host: &Host) -> Finding {
    let what = "perf_event_paranoid";
    let Some(level) = host.paranoid else {
        return Finding::new(Missing, what, "the kernel has no perf events, or /proc hides them")
            .remedy("a kernel built with CONFIG_PERF_EVENTS");
    };
    let meaning = match level {
        i32::MIN..=-1 => "everybody may sample everything",
        0 => "everybody may sample the whole machine",
        1 => "everybody may sample own processes, the kernel included",
        2 => "everybody may sample own processes, user code only",
        _ => "sampling takes CAP_PERFMON",
    };
    let free = level <= 0 || is_privileged(host);
    let finding = Finding::new(if free { Good } else { Limited }, what, format!("{level}: {meaning}"));
    if free { finding } else { finding.remedy("sudo sysctl kernel.perf_event_paranoid=0") }
}

fn is_privileged(host: &Host) -> bool {
    host.has(CAP_PERFMON) || host.has(CAP_SYS_ADMIN)
}

fn capabilities(host: &Host) -> Finding {
    if host.is_in_user_namespace {
        return Finding::new(
            Limited,
            "capabilities",
            "none that counts: those of a user namespace end there",
        )
        .remedy("run plumb outside of the user namespace, as root");
    }
    let has: Vec<&str> =
        CAPABILITIES.iter().filter(|(_, bit)| host.has(*bit)).map(|(name, _)| *name).collect();
    if has.is_empty() {
        return Finding::new(Limited, "capabilities", "no capability for sampling").remedy(setcap_perf());
    }
    Finding::new(if is_privileged(host) { Good } else { Limited }, "capabilities", has.join(", "))
}

fn tried(result: &io::Result<()>, what: &str, can: &str, otherwise: FindingState, cannot: &str) -> Finding {
    match result {
        Ok(()) => Finding::new(Good, what, can),
        Err(error) => Finding::new(otherwise, what, format!("{cannot} ({error})")),
    }
}

fn own(result: &io::Result<()>, host: &Host) -> Finding {
    let finding = tried(result, "own processes", "can be sampled", Missing, "can't be sampled");
    match result {
        Ok(()) => finding,
        // Either permitted or missing: a container's seccomp profile answers instead of the kernel.
        Err(error) if error.raw_os_error() == Some(38) || host.paranoid.is_some_and(allows_own_processes) => {
            finding.remedy(format!("in a container: {CONTAINER_REMEDY}"))
        }
        Err(_) => finding.remedy("sudo sysctl kernel.perf_event_paranoid=2"),
    }
}

fn kernel(result: &io::Result<()>) -> Finding {
    let finding = tried(result, "kernel stacks", "can be sampled", Limited, "user code only");
    if result.is_ok() { finding } else { finding.remedy("sudo sysctl kernel.perf_event_paranoid=1") }
}

fn machine(result: &io::Result<()>) -> Finding {
    let cannot = "no plumb record -a, and short-lived processes are missed";
    let finding = tried(result, "whole machine", "can be sampled", Limited, cannot);
    if result.is_ok() {
        finding
    } else {
        finding.remedy("sudo sysctl kernel.perf_event_paranoid=0, or run as root")
    }
}

fn cgroup(abilities: &Abilities) -> Finding {
    let what = "cgroup";
    match &abilities.cgroup {
        Ok(path) if abilities.machine.is_ok() => {
            let parent = path.parent().unwrap_or(path);
            Finding::new(Good, what, format!("commands get one of their own below {}", parent.display()))
        }
        Ok(_) => Finding::new(
            Limited,
            what,
            "can be created, but sampling by cgroup requires access to the whole machine",
        ),
        Err(error) => {
            let says = format!("none for commands ({error}): the machine is sampled and filtered by process");
            Finding::new(Limited, what, says)
                .remedy("run as root, or: systemd-run --user --scope -p Delegate=yes plumb record ...")
        }
    }
}

fn counters(counted: &io::Result<()>, host: &Host) -> Finding {
    let what = "hardware counters";
    if counted.is_ok() {
        let counters = hardware_counters(host).join(", ");
        let says = format!("plumb stat counts {counters}; -e cycles samples by them");
        return Finding::new(Good, what, says);
    }
    let says =
        "none: plumb stat shows no cycles, instructions or misses; sampling uses cpu-clock and needs none";
    let finding = Finding::new(Limited, what, says);
    if host.is_virtual {
        finding.remedy("give the virtual machine a PMU (QEMU/KVM: -cpu host,pmu=on)")
    } else {
        finding
    }
}

fn rate(host: &Host) -> Finding {
    let what = "highest rate";
    match host.max_sample_rate {
        Some(rate) if rate >= DEFAULT_RATE => Finding::new(Good, what, format!("{rate} samples a second")),
        Some(rate) => {
            let says = format!(
                "{rate} samples a second (kernel.perf_event_max_sample_rate; the kernel's default is {DEFAULT_RATE}, and it lowers \
                 that when interrupts of hardware counters take long)"
            );
            Finding::new(Limited, what, says)
                .remedy(format!("sudo sysctl kernel.perf_event_max_sample_rate={DEFAULT_RATE}"))
        }
        None => Finding::new(Limited, what, "not known"),
    }
}

fn symbols(host: &Host) -> Finding {
    let what = "kernel symbols";
    let text = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let mut lines = text.lines().peekable();
    if lines.peek().is_none() {
        return Finding::new(Limited, what, "there is no /proc/kallsyms")
            .remedy("a kernel built with CONFIG_KALLSYMS");
    }
    let shown =
        lines.any(|line| line.split(' ').next().is_some_and(|address| address.bytes().any(|b| b != b'0')));
    if shown {
        return Finding::new(Good, what, "readable");
    }
    // At 0, users who may sample the kernel may read them (kallsyms_show_value in kernel/kallsyms.c).
    let (level, setting) = match host.kptr_restrict {
        Some(0) => (String::new(), ""),
        level => (
            level.map_or(String::new(), |level| format!(" (kptr_restrict {level})")),
            "kernel.kptr_restrict=0 ",
        ),
    };
    Finding::new(Limited, what, format!("hidden from this user{level}"))
        .remedy(format!("run as root, or: sudo sysctl {setting}kernel.perf_event_paranoid=1"))
}

/// A tracepoint that every kernel has.
const TRACEPOINT: &str = "sched:sched_process_exec";

fn tracepoints() -> Finding {
    let what = "tracepoints";
    let tried = Named::parse(TRACEPOINT).map_err(io::Error::other).and_then(|named| match named {
        Named::Trigger(trigger, _) => plumb_capture_perf::try_trigger(trigger),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    });
    let finding = tried_line(&tried, what, "can be sampled (plumb record -e GROUP:NAME)", "can't be sampled");
    if tried.is_ok() {
        finding
    } else {
        finding.remedy("run as root, with tracefs mounted: sudo mount -t tracefs tracefs /sys/kernel/tracing")
    }
}

fn functions() -> Finding {
    let what = "functions";
    let tried = entry_of_this_program().and_then(|offset| {
        let trigger = Trigger::uprobe("entry", Path::new("/proc/self/exe"), offset, false);
        plumb_capture_perf::try_trigger(trigger.map_err(io::Error::other)?)
    });
    let can = "can be sampled (plumb record -e uprobe:FILE:FUNCTION)";
    let finding = tried_line(&tried, what, can, "can't be sampled");
    if tried.is_ok() { finding } else { finding.remedy("run as root, on a kernel with CONFIG_UPROBE_EVENTS") }
}

fn tried_line(result: &io::Result<()>, what: &str, can: &str, cannot: &str) -> Finding {
    let error = result.as_ref().err().map(|error| error.to_string());
    match error.as_deref().and_then(|error| error.lines().next()) {
        None => Finding::new(Good, what, can),
        Some(error) => Finding::new(Limited, what, format!("{cannot} ({error})")),
    }
}

/// File offset of this program's entry point: code that has run already.
fn entry_of_this_program() -> io::Result<u64> {
    /// Offset of `e_entry` in a 64-bit ELF header.
    const ENTRY: usize = 24;
    let no_elf = || io::Error::from(io::ErrorKind::InvalidData);
    let mut file = fs::File::open("/proc/self/exe")?;
    let mut header = [0; 32];
    io::Read::read_exact(&mut file, &mut header)?;
    let entry = header[ENTRY..].first_chunk().map(|bytes| u64::from_ne_bytes(*bytes)).ok_or_else(no_elf)?;
    let elf = plumb_process::Elf::read(&file).map_err(|_| no_elf())?;
    let code = elf.code().find(|&(address, _, size)| entry.wrapping_sub(address) < size);
    code.map(|(address, offset, _)| entry - address + offset.0).ok_or_else(no_elf)
}

fn rings(host: &Host) -> Finding {
    let what = "ring memory";
    match host.mlock_kb {
        _ if is_privileged(host) => Finding::new(Good, what, "as much as needed"),
        Some(kb) if kb >= 512 => {
            Finding::new(Good, what, format!("{kb} KiB a processor, and what ulimit -l allows"))
        }
        Some(kb) => Finding::new(Limited, what, format!("{kb} KiB a processor"))
            .remedy("sudo sysctl kernel.perf_event_mlock_kb=2048"),
        None => Finding::new(Limited, what, "not known"),
    }
}

fn types() -> Finding {
    let (what, path) = ("BTF", "/sys/kernel/btf/vmlinux");
    match fs::File::open(path) {
        Ok(_) => Finding::new(Good, what, format!("{path} (types of the kernel, for BPF programs)")),
        Err(error) => {
            Finding::new(Limited, what, format!("{path} (types of the kernel, for BPF programs): {error}"))
                .remedy("a kernel built with CONFIG_DEBUG_INFO_BTF")
        }
    }
}
