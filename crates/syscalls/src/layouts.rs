//! Structures that system calls read and write, with the field offsets of the C library's definitions.
//!
//! Elsewhere: structures that point to others (messages), socket addresses.

use std::mem::{offset_of, size_of};

/// A structure.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Name in `kinds.txt`.
    pub name: &'static str,
    /// Size in bytes.
    pub size: usize,
    /// The fields that are shown.
    pub fields: &'static [Field],
}

/// A field of a structure.
#[derive(Debug)]
pub(crate) struct Field {
    /// Name; `value` if the structure consists of this field only.
    pub name: &'static str,
    /// Offset in bytes.
    pub at: usize,
    /// Size in bytes.
    pub size: usize,
    /// Contents.
    pub kind: FieldKind,
}

/// Contents of a field.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FieldKind {
    /// A signed number.
    Signed,
    /// An unsigned number.
    Unsigned,
    /// An address, or bits without names.
    Hex,
    /// Permissions, in octal.
    Octal,
    /// Permissions and file type.
    FileMode,
    /// A value of the set with this name.
    Set(&'static str),
    /// A NUL-terminated string.
    Text,
    /// A descriptor.
    Fd,
    /// A signal set.
    Signals,
    /// Exit status of a child process.
    WaitStatus,
    /// Seconds and microseconds.
    Timeval,
    /// Seconds and nanoseconds.
    Timespec,
}

impl Layout {
    /// Finds a structure by its name.
    pub fn find(name: &str) -> Option<&'static Layout> {
        LAYOUTS.iter().find(|layout| layout.name == name)
    }
}

/// Size of a field that a function takes out of a structure.
const fn size_of_field<S, F>(_: fn(S) -> F) -> usize {
    size_of::<F>()
}

macro_rules! layouts {
    ($($name:ident $type:ty { $($field:ident $kind:ident $(($set:literal))?),* })*) => {
        const LAYOUTS: &[Layout] = &[$(Layout {
            name: stringify!($name),
            size: size_of::<$type>(),
            fields: &[$(Field {
                name: stringify!($field),
                at: offset_of!($type, $field),
                size: size_of_field(|whole: $type| whole.$field),
                kind: FieldKind::$kind $(($set))?,
            }),*],
        }),*];
    };
}

/// A single value; its field name is not shown.
#[repr(C)]
struct One<T> {
    value: T,
}

/// The kernel's structure, which differs from the C library's (include/linux/signal_types.h).
#[repr(C)]
struct KernelSigaction {
    sa_handler: usize,
    sa_flags: u64,
    sa_restorer: usize,
    sa_mask: u64,
}

layouts! {
    int One<i32> { value Signed }
    long One<i64> { value Signed }
    wait_status One<i32> { value WaitStatus }
    sigset One<u64> { value Signals }
    timespec libc::timespec { tv_sec Signed, tv_nsec Signed }
    timeval libc::timeval { tv_sec Signed, tv_usec Signed }
    itimerval libc::itimerval { it_interval Timeval, it_value Timeval }
    itimerspec libc::itimerspec { it_interval Timespec, it_value Timespec }
    rlimit libc::rlimit { rlim_cur Set("rlimit_value"), rlim_max Set("rlimit_value") }
    struct_stat libc::stat { st_mode FileMode, st_size Signed }
    statx libc::statx { stx_mask Set("statx_mask"), stx_mode FileMode, stx_size Unsigned }
    statfs libc::statfs { f_type Hex, f_bsize Unsigned, f_blocks Unsigned, f_bfree Unsigned }
    pollfd libc::pollfd { fd Fd, events Set("poll_events"), revents Set("poll_events") }
    epoll_event libc::epoll_event { events Set("epoll_events"), u64 Hex }
    iovec libc::iovec { iov_base Hex, iov_len Unsigned }
    flock libc::flock { l_type Set("lock_type"), l_whence Set("whence"), l_start Signed, l_len Signed }
    open_how libc::open_how { flags Set("open_flags"), mode Octal, resolve Set("resolve") }
    clone_args libc::clone_args {
        flags Set("clone3_flags"), child_tid Hex, parent_tid Hex, exit_signal Set("signal"), stack Hex, stack_size Hex, tls Hex
    }
    sigaction KernelSigaction {
        sa_handler Set("handler"), sa_mask Signals, sa_flags Set("sa_flags"), sa_restorer Hex
    }
    stack libc::stack_t { ss_sp Hex, ss_flags Set("sigaltstack_flags"), ss_size Unsigned }
    rusage libc::rusage { ru_utime Timeval, ru_stime Timeval, ru_maxrss Signed, ru_minflt Signed, ru_majflt Signed }
    winsize libc::winsize { ws_row Unsigned, ws_col Unsigned, ws_xpixel Unsigned, ws_ypixel Unsigned }
    utsname libc::utsname { sysname Text, nodename Text, release Text, version Text, machine Text }
    sysinfo libc::sysinfo { uptime Signed, totalram Unsigned, freeram Unsigned, procs Unsigned }
    message libc::msghdr {
        msg_name Hex, msg_namelen Unsigned, msg_iov Hex, msg_iovlen Unsigned, msg_controllen Unsigned, msg_flags Set("msg_flags_net")
    }
}
