//! Who is followed, as the programs are told (bpf/follow.h).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use aya::Ebpf;
use aya::maps::{Array, MapData};

use crate::object::{LoadError, take, take_descriptor};
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

    /// Keeps to processes that are followed.
    pub fn only_some(&mut self) -> io::Result<()> {
        self.tell(Control { follows_some: 1, ..self.control })
    }

    /// Keeps to this process, by its pidfd, with what it forks from now on, and to others that are told.
    pub fn add(&mut self, pid: BorrowedFd<'_>) -> io::Result<()> {
        self.only_some()?;
        let pid = u32::try_from(pid.as_raw_fd()).map_err(|_| io::ErrorKind::InvalidInput)?;
        // The key of a task's storage is a descriptor of its process.
        sys::update_u32(self.processes.as_fd(), pid, 1)
    }

    fn tell(&mut self, control: Control) -> io::Result<()> {
        self.control = control;
        self.controls.set(0, control, 0).map_err(io::Error::other)
    }
}
