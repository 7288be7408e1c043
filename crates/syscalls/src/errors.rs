//! Return values and errors of calls, and the names of errors.

use syscalls::Errno;

/// The largest error number (`MAX_ERRNO` of include/linux/err.h).
pub const MAX_ERRNO: u32 = 4095;

/// Result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Returned value.
    Value(i64),
    /// Error number of a failed call.
    Error(u32),
}

impl Outcome {
    /// Decodes the kernel's result register.
    pub fn of(result: i64) -> Self {
        match u32::try_from(result.unsigned_abs()) {
            Ok(number @ 1..=MAX_ERRNO) if result < 0 => Outcome::Error(number),
            _ => Outcome::Value(result),
        }
    }

    /// Whether the call failed.
    pub fn is_error(self) -> bool {
        matches!(self, Outcome::Error(_))
    }
}

/// Name of an error, including errors internal to the kernel (`ERESTARTSYS`). `None` if it has no name.
pub fn errno_name(number: u32) -> Option<&'static str> {
    Errno::new(i32::try_from(number).ok()?).name()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_the_last_page_of_addresses() {
        assert_eq!(Outcome::of(3), Outcome::Value(3));
        assert_eq!(Outcome::of(0), Outcome::Value(0));
        assert_eq!(Outcome::of(-2), Outcome::Error(2));
        assert_eq!(Outcome::of(-4095), Outcome::Error(4095));
        assert_eq!(Outcome::of(-4096), Outcome::Value(-4096), "an address, say of mmap");
        assert_eq!(Outcome::of(i64::MIN), Outcome::Value(i64::MIN));
    }

    #[test]
    fn errors_have_the_names_of_the_c_library() {
        let truth = [(libc::ENOENT, "ENOENT"), (libc::EAGAIN, "EAGAIN"), (libc::ETIMEDOUT, "ETIMEDOUT")];
        for (number, name) in truth {
            assert_eq!(errno_name(number.unsigned_abs()), Some(name));
        }
        assert_eq!(errno_name(512), Some("ERESTARTSYS"));
        assert_eq!(errno_name(0), None);
        assert_eq!(errno_name(u32::MAX), None);
    }
}
