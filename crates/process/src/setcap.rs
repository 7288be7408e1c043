//! Shell commands that grant plumb's program capabilities instead of root, for messages to the user.
//!
//! Elsewhere: the capabilities that each feature needs (docs/privileges.md), and those of this process ([`Host`](crate::Host)).

use std::path::Path;

/// Capabilities granted by [`setcap_perf`].
const PERF: &str = "cap_perfmon,cap_sys_ptrace,cap_syslog";

/// Capabilities granted by [`setcap_bpf`].
const BPF: &str = "cap_bpf,cap_perfmon,cap_sys_ptrace,cap_syslog,cap_dac_read_search";

/// Returns the command for everything that perf events provide: other users' processes, the kernel, the whole machine, names of kernel functions.
pub fn setcap_perf() -> String {
    command(PERF, &program())
}

/// Returns the command that also allows BPF programs: after it plumb needs root only for uprobes.
pub fn setcap_bpf() -> String {
    command(BPF, &program())
}

fn command(capabilities: &str, program: &str) -> String {
    format!("sudo setcap {capabilities}=ep {program}")
}

/// Returns this program as a shell word.
fn program() -> String {
    let typed = std::env::args_os().next().unwrap_or_default();
    word(&typed.to_string_lossy(), |path| {
        // setcap(8) does not follow symbolic links.
        let is_file = Path::new(path).symlink_metadata().is_ok_and(|found| found.is_file());
        let real = || std::env::current_exe().ok()?.into_os_string().into_string().ok();
        if is_file { Some(path.to_owned()) } else { real() }
    })
}

/// Returns a shell word that finds the program started by this name: if it was a path, it may not be in PATH. `file` returns the file at a path.
fn word(typed: &str, file: impl Fn(&str) -> Option<String>) -> String {
    let by_name = || "$(command -v plumb)".to_owned();
    if !typed.contains('/') {
        return by_name();
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+".contains(&byte);
    match file(typed) {
        Some(path) if path.bytes().all(is_plain) => path,
        Some(path) if !path.contains(['\'', '\n']) => format!("'{path}'"),
        _ => by_name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// docs/privileges.md shows what was tested with these.
    #[test]
    fn the_documentation_has_the_same_command() {
        let typed = command(BPF, &word("plumb", |_| None));
        assert!(include_str!("../../../docs/privileges.md").contains(&format!("`{typed}`")));
        let all: Vec<&str> = BPF.split(',').collect();
        assert!(PERF.split(',').all(|one| all.contains(&one)) && all.len() == 5);
    }

    #[test]
    fn a_program_that_was_started_by_a_path_is_named_by_it() {
        let same = |path: &str| Some(path.to_owned());
        assert_eq!(word("plumb", same), "$(command -v plumb)");
        assert_eq!(word("../target/debug/plumb", same), "../target/debug/plumb");
        assert_eq!(word("/my files/plumb", same), "'/my files/plumb'");
        assert_eq!(word("bin/link", |_| Some("/opt/plumb".into())), "/opt/plumb");
        assert!(setcap_perf().starts_with("sudo setcap cap_perfmon,") && !setcap_bpf().contains("$("));
    }
}
