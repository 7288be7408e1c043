//! Who is followed, as the programs are told (bpf/follow.h).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use aya::Ebpf;
use aya::maps::{Array, MapData};

use crate::object::{take, take_descriptor};
use crate::refusal::LoadError;
use crate::sys;
use crate::wire::Control;

// SAFETY: a structure of integers without padding, as `xtask codegen` makes sure: any bytes are valid.
#[allow(unsafe_code)]
mod pod {
    // SAFETY: see above.
    unsafe impl aya::Pod for super::Control {}
}

/// Whom the programs of an object follow. At first everybody, and nothing has begun.
pub(crate) struct Followed {
    processes: OwnedFd,
    controls: Array<MapData, Control>,
    control: Control,
}

impl Followed {
    /// Takes the maps of an object.
    pub fn take(bpf: &mut Ebpf) -> Result<Self, LoadError> {
        Ok(Self {
            processes: take_descriptor(bpf, "followed")?,
            controls: take(bpf, "controls")?,
            control: Control::default(),
        })
    }

    /// From now on what the programs see counts.
    pub fn begin(&mut self) -> io::Result<()> {
        self.tell(Control { began: 1, ..self.control })
    }

    /// Looks at who is off the processor, or no more.
    pub fn look_at_switches(&mut self, does: bool) -> io::Result<()> {
        self.tell(Control { off_cpu: does.into(), ..self.control })
    }

    /// Keeps to processes that are followed.
    pub fn only_some(&mut self) -> io::Result<()> {
        self.tell(Control { follows_some: 1, ..self.control })
    }

    /// Keeps to this process, by its pidfd, with what it forks from now on, and to others that are told.
    pub fn add(&mut self, pid: BorrowedFd<'_>) -> io::Result<()> {
        self.add_as(pid, 1)
    }

    /// Likewise, with what the programs are to know of the process besides.
    pub fn add_as(&mut self, pid: BorrowedFd<'_>, how: u32) -> io::Result<()> {
        self.only_some()?;
        sys::update_u32(self.processes.as_fd(), key(pid)?, how)
    }

    /// Whether a process is followed, by its pidfd.
    pub fn has(&self, pid: BorrowedFd<'_>) -> bool {
        key(pid).is_ok_and(|key| sys::has_u32(self.processes.as_fd(), key))
    }

    /// Follows a process no longer.
    pub fn forget(&mut self, pid: BorrowedFd<'_>) -> io::Result<()> {
        sys::delete(self.processes.as_fd(), key(pid)?)
    }

    /// Nothing counts from now on, and everybody is followed again once it does.
    pub fn reset(&mut self) -> io::Result<()> {
        self.tell(Control::default())
    }

    /// Nothing counts from now on.
    pub fn end(&mut self) -> io::Result<()> {
        self.tell(Control { began: 0, ..self.control })
    }

    fn tell(&mut self, control: Control) -> io::Result<()> {
        self.control = control;
        self.controls.set(0, control, 0).map_err(io::Error::other)
    }
}

/// The key of a task's storage: a descriptor of its process.
fn key(pid: BorrowedFd<'_>) -> io::Result<u32> {
    u32::try_from(pid.as_raw_fd()).map_err(|_| io::ErrorKind::InvalidInput.into())
}
