//! Makes the kernel set up the controllers of cgroup v2.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// The file of a cgroup that says which controllers are enabled below it.
pub(super) const ENABLED: &str = "cgroup.subtree_control";
/// Controllers that cost next to nothing while they are enabled, the best first.
const LIGHT: [&str; 3] = ["pids", "misc", "rdma"];

/// Makes the kernel set up the controllers of all cgroups of a hierarchy. The controller of perf events works without being enabled, but is
/// set up together with others: only once one is enabled or disabled at the root (`cgroup_propagate_control` in
/// kernel/cgroup/cgroup.c). An init system does that; in a small virtual machine or container it may not have been done.
pub(super) fn set_up(root: &Path) -> io::Result<()> {
    let read = |name: &str| fs::read_to_string(root.join(name));
    let enabled = root.join(ENABLED);
    let Some(controller) = disabled_controller(&read("cgroup.controllers")?, &read(ENABLED)?) else {
        return Err(io::Error::new(io::ErrorKind::NotFound, "no controller is there to be enabled"));
    };
    let write = |sign: char| {
        let mut file = fs::OpenOptions::new().write(true).open(&enabled)?;
        file.write_all(format!("{sign}{controller}").as_bytes())
    };
    // Only for a moment: enabling controllers is not up to the recorder.
    write('+').and_then(|()| write('-'))
}

/// The controller of a cgroup that does the least and isn't enabled below it.
fn disabled_controller(controllers: &str, enabled: &str) -> Option<String> {
    let is_disabled = |name: &&str| !enabled.split_whitespace().any(|other| other == *name);
    let all: Vec<&str> = controllers.split_whitespace().filter(is_disabled).collect();
    let best = LIGHT.iter().find(|name| all.contains(name)).or(all.first());
    best.map(|&name| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_controller_that_is_switched_is_the_lightest_that_is_off() {
        let of = |controllers: &str, enabled: &str| disabled_controller(controllers, enabled);
        assert_eq!(of("cpuset cpu io memory pids misc\n", "\n").as_deref(), Some("pids"));
        assert_eq!(of("cpu memory pids misc\n", "memory pids\n").as_deref(), Some("misc"));
        assert_eq!(of("cpu memory\n", "cpu\n").as_deref(), Some("memory"));
        assert_eq!(of("cpu\n", "cpu\n"), None);
        assert_eq!(of("", ""), None);
    }

    #[test]
    fn controllers_are_set_up_and_left_as_they_were() {
        let root = std::env::temp_dir().join(format!("plumb-cgroup-{}", std::process::id()));
        fs::create_dir_all(&root).expect("a folder for the test");
        let put = |name: &str, text: &str| fs::write(root.join(name), text).expect("it is writable");
        put("cgroup.controllers", "cpu memory pids\n");
        put(ENABLED, "");
        set_up(&root).expect("files take what is written");
        let last = fs::read_to_string(root.join(ENABLED)).expect("it is there");
        assert_eq!(last, "-pids", "it is disabled again");
        put(ENABLED, "cpu memory pids\n");
        assert!(set_up(&root).is_err(), "all are enabled: that was not the reason");
        fs::remove_dir_all(&root).expect("it is ours");
    }
}
