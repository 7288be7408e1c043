//! Commands that give plumb's program rights that root has, for messages that say what to type.
//!
//! Not here: what each feature needs (docs/privileges.md), and what this process has ([`Host`](crate::Host)).

/// For all that perf events give: other users' processes, the kernel, the whole machine, names of kernel functions.
pub const SETCAP_PERF: &str = "sudo setcap cap_perfmon,cap_sys_ptrace,cap_syslog=ep $(command -v plumb)";

/// For programs in the kernel, too: with it `plumb` needs no root, but for uprobes.
pub const SETCAP_BPF: &str =
    "sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_syslog,cap_dac_read_search=ep $(command -v plumb)";

#[cfg(test)]
mod tests {
    use super::*;

    /// The page says what was tried with these.
    #[test]
    fn the_documentation_has_the_same_command() {
        assert!(include_str!("../../../docs/privileges.md").contains(&format!("`{SETCAP_BPF}`")));
        let list = |command: &str| -> Vec<String> {
            let words = command.split([' ', ',', '=']);
            words.filter(|word| word.starts_with("cap_")).map(str::to_owned).collect()
        };
        let all = list(SETCAP_BPF);
        assert!(list(SETCAP_PERF).iter().all(|one| all.contains(one)) && all.len() == 5);
    }
}
