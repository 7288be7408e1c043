//! What this user may record on this machine, found out by trying it, and what would allow more.

use std::fs;
use std::io;
use std::path::Path;

use plumb_capture_bpf::CAP_BPF;
use plumb_capture_perf::{Abilities, CAP_PERFMON, CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_SYSLOG, Host};

use super::State::{Good, Limited, Missing};
use super::{Diagnosis, Finding, State};

/// Gives plumb itself what root has here.
const SETCAP: &str = "sudo setcap cap_perfmon,cap_sys_ptrace,cap_syslog=ep $(command -v plumb)";

/// What the kernel allows until interrupts take long (kernel/events/core.c, DEFAULT_MAX_SAMPLE_RATE).
const DEFAULT_RATE: u32 = 100_000;

/// Looks at the machine.
pub(super) fn diagnosis() -> Diagnosis {
    let host = Host::read();
    let abilities = Abilities::find(&host, true);
    let findings = vec![
        permission(&host),
        capabilities(&host),
        own(&abilities.own),
        kernel(&abilities.kernel),
        machine(&abilities.machine),
        cgroup(&abilities),
        counters(&abilities, &host),
        rate(&host),
        symbols(&host),
        rings(&host),
        readable("tracefs", "system calls and scheduling by name", &["/sys/kernel/tracing/events"]),
        readable("BTF", "types of the kernel, for BPF programs", &["/sys/kernel/btf/vmlinux"]),
        bpf(&host),
    ];
    let subject = format!(
        "{}: Linux {} {}, {} processors",
        host.name,
        host.kernel,
        std::env::consts::ARCH,
        host.cpus.len()
    );
    Diagnosis { subject, findings }
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
    let all = [
        ("CAP_PERFMON", CAP_PERFMON),
        ("CAP_BPF", CAP_BPF),
        ("CAP_SYS_ADMIN", CAP_SYS_ADMIN),
        ("CAP_SYS_PTRACE", CAP_SYS_PTRACE),
        ("CAP_SYSLOG", CAP_SYSLOG),
    ];
    let has: Vec<&str> = all.iter().filter(|(_, bit)| host.has(*bit)).map(|(name, _)| *name).collect();
    if has.is_empty() {
        return Finding::new(Limited, "capabilities", "none of those that sampling goes by").remedy(SETCAP);
    }
    Finding::new(if is_privileged(host) { Good } else { Limited }, "capabilities", has.join(", "))
}

fn tried(result: &io::Result<()>, what: &str, can: &str, otherwise: State, cannot: &str) -> Finding {
    match result {
        Ok(()) => Finding::new(Good, what, can),
        Err(error) => Finding::new(otherwise, what, format!("{cannot} ({error})")),
    }
}

fn own(result: &io::Result<()>) -> Finding {
    let finding = tried(result, "own processes", "can be sampled", Missing, "can't be sampled");
    match result {
        Ok(()) => finding,
        Err(error) if error.raw_os_error() == Some(38) => finding.remedy(
            "in a container: docker run --cap-add PERFMON, or a seccomp profile with perf_event_open",
        ),
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
        Ok(_) => {
            Finding::new(Limited, what, "can be made, but sampling by it takes the right to the machine")
        }
        Err(error) => {
            let says =
                format!("none can be made ({error}): the machine is sampled and sorted out by process");
            Finding::new(Limited, what, says)
                .remedy("run as root, or: systemd-run --user --scope -p Delegate=yes plumb record ...")
        }
    }
}

fn counters(abilities: &Abilities, host: &Host) -> Finding {
    let what = "hardware counters";
    if abilities.counters.is_ok() {
        let says = "plumb stat counts cycles, instructions and misses; -e cycles samples by them";
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
    let level = host.kptr_restrict.map_or(String::new(), |level| format!(" (kptr_restrict {level})"));
    Finding::new(Limited, what, format!("hidden from this user{level}"))
        .remedy("run as root, or: sudo sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1")
}

fn bpf(host: &Host) -> Finding {
    let what = "BPF";
    match plumb_capture_bpf::support(host) {
        Ok(()) => {
            Finding::new(Good, what, "stacks can be walked in the kernel (plumb record -a, --capture bpf)")
        }
        Err(why) => {
            Finding::new(Limited, what, format!("stacks are copied, not walked in the kernel: {why}"))
        }
    }
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

fn readable(what: &str, purpose: &str, paths: &[&str]) -> Finding {
    let open = |path: &&&str| {
        let path = Path::new(path);
        if path.is_dir() { fs::read_dir(path).is_ok() } else { fs::File::open(path).is_ok() }
    };
    match paths.iter().find(open) {
        Some(path) => Finding::new(Good, what, format!("{path} ({purpose})")),
        None => {
            Finding::new(Limited, what, format!("not readable ({purpose}); plumb record doesn't need it"))
        }
    }
}
