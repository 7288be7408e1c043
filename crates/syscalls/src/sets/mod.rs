//! Values that have names: enumerations, sets of flags, and words that combine both. The values are those of the C library's
//! headers and of the kernel for the target architecture.
//!
//! Elsewhere: the set of each argument (`kinds.txt`).

mod files;
mod memory;
mod network;
mod processes;
mod set;

pub use set::Set;
use set::{named, set, sets};

impl Set {
    /// Finds a set by its name.
    pub(crate) fn find(name: &str) -> Option<&'static Set> {
        let all = [files::SETS, memory::SETS, network::SETS, processes::SETS];
        all.into_iter().flatten().find(|set| set.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(set: &str, value: u64) -> String {
        let mut out = String::new();
        Set::find(set).expect("there is such a set").write(value, 32, &mut out);
        out
    }

    #[test]
    fn flags_and_values_are_said_by_name() {
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_CLOEXEC;
        assert_eq!(said("open_flags", flags as u64), "O_RDWR|O_CREAT|O_CLOEXEC");
        assert_eq!(said("open_flags", 0), "O_RDONLY");
        assert_eq!(said("open_flags", libc::O_CLOEXEC as u64), "O_RDONLY|O_CLOEXEC");
        assert_eq!(said("open_flags", libc::O_SYNC as u64), "O_RDONLY|O_SYNC");
        assert_eq!(said("open_flags", 0x8000_0000), "O_RDONLY|0x80000000");
        assert_eq!(said("prot", 0), "PROT_NONE");
        assert_eq!(said("prot", 3), "PROT_READ|PROT_WRITE");
        assert_eq!(said("signal", 9), "SIGKILL");
        assert_eq!(said("signal", 64), "64");
        assert_eq!(said("clock", (-1_i32) as u32 as u64), "-1");
        assert_eq!(said("clone_flags", 17), "SIGCHLD");
        assert_eq!(said("clone_flags", 0), "0");
        assert_eq!(said("futex_op", 128), "FUTEX_WAIT|FUTEX_PRIVATE_FLAG");
        assert_eq!(said("socket_type", 0o2000000 | 1), "SOCK_STREAM|SOCK_CLOEXEC");
        assert_eq!(said("rwf", 0), "0");
    }

    #[test]
    fn every_set_is_of_some_argument_or_field() {
        let all = [files::SETS, memory::SETS, network::SETS, processes::SETS];
        let (arguments, fields) = (include_str!("../kinds.txt"), include_str!("../layouts.rs"));
        // Sets used by memory that is formatted specially.
        let others = ["family", "file_type"];
        for set in all.into_iter().flatten().filter(|set| !others.contains(&set.name)) {
            let is_of_argument = arguments.split_whitespace().any(|word| word == set.name);
            assert!(is_of_argument || fields.contains(&format!("\"{}\"", set.name)), "{}", set.name);
        }
    }

    #[test]
    fn names_are_there_once_and_no_flag_hides_behind_another() {
        let all = [files::SETS, memory::SETS, network::SETS, processes::SETS];
        let all: Vec<_> = all.into_iter().flatten().collect();
        assert!(all.len() > 100, "{} sets", all.len());
        for (index, set) in all.iter().enumerate() {
            assert!(!all[..index].iter().any(|other| other.name == set.name), "{}", set.name);
            for (at, (name, flag)) in set.flags.iter().enumerate() {
                let earlier =
                    set.flags[..at].iter().find(|(_, earlier)| *flag != 0 && earlier & flag == *earlier);
                assert_eq!(earlier, None, "{name} of {}", set.name);
            }
        }
    }
}
