//! A program given by path or name, and whether a process runs it.

/// Longest name of a task in bytes (`TASK_COMM_LEN` without its NUL).
const COMM: usize = 15;

/// A program, given by its path or its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program(Vec<u8>);

impl Program {
    /// Creates it from a path, if the text contains a slash, or from a name in any directory. A script has its own name, and the
    /// path of its interpreter.
    pub fn new(text: &[u8]) -> Self {
        Self(text.to_vec())
    }

    /// Returns the kernel's name for a process that starts to run it, as far as it can be derived.
    pub fn comm(&self) -> &[u8] {
        let name = self.0.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        name.get(..COMM).unwrap_or(name)
    }

    fn is_path(&self) -> bool {
        self.0.contains(&b'/')
    }

    /// Whether a process with this name certainly runs it.
    pub fn is_comm(&self, comm: &[u8]) -> bool {
        !self.is_path() && self.0.len() <= COMM && comm == self.0
    }

    /// Whether a process with this executable runs it.
    pub fn is_executable(&self, path: &[u8]) -> bool {
        match self.is_path() {
            true => path == self.0,
            false => path.rsplit(|&byte| byte == b'/').next() == Some(&self.0[..]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_a_path_or_a_name() {
        let program = |text: &str| Program::new(text.as_bytes());
        assert!(program("gcc").is_comm(b"gcc") && program("gcc").is_executable(b"/usr/bin/gcc"));
        assert!(!program("gcc").is_comm(b"gcc-12") && !program("gcc").is_executable(b"/usr/bin/gcc-12"));
        assert!(program("/usr/bin/gcc").is_executable(b"/usr/bin/gcc"));
        assert!(!program("/usr/bin/gcc").is_executable(b"/opt/bin/gcc"));
        assert!(!program("/usr/bin/gcc").is_comm(b"gcc"), "it may be another folder's");
        let long = program("a-name-of-more-than-15");
        assert_eq!(long.comm(), b"a-name-of-more-");
        assert!(!long.is_comm(b"a-name-of-more-"), "others begin so too");
        assert!(long.is_executable(b"/x/a-name-of-more-than-15"));
    }
}
