//! The names of plumb's own programs: they show in the kernel's stacks and in lists of programs.

/// The programs in `bpf/`, in alphabetical order.
pub const PROGRAM_NAMES: [&str; 28] = [
    "on_ask",
    "on_begin",
    "on_call",
    "on_count",
    "on_end",
    "on_enter",
    "on_enter_again",
    "on_exec",
    "on_exit",
    "on_exit_again",
    "on_fault",
    "on_finish",
    "on_fork",
    "on_free",
    "on_function",
    "on_map",
    "on_mark",
    "on_returns",
    "on_switch",
    "on_switch_alone",
    "on_switched",
    "on_thread",
    "on_tick",
    "on_time",
    "on_time_again",
    "on_tracepoint",
    "on_wakeup",
    "sample",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::PROGRAM_NAMES;

    #[test]
    fn the_names_are_those_of_the_programs_in_the_objects() {
        for architecture in ["x86_64", "aarch64"] {
            let mut found = BTreeSet::new();
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf").join(architecture);
            for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
                let bytes = std::fs::read(entry.path()).expect("it can be read");
                let object = aya_obj::Object::parse(&bytes).expect("an object of programs");
                found.extend(object.programs.into_keys());
            }
            assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), PROGRAM_NAMES, "{architecture}");
        }
    }
}
