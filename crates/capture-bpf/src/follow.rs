//! The set of followed processes, shared with the programs (bpf/follow.h).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use aya::Ebpf;
use aya::maps::{Array, MapData};

use crate::object::{Machine, take, take_descriptor};
use crate::refusal::LoadError;
use crate::sys;
use crate::wire::Control;

// SAFETY: a structure of integers without padding, as `xtask codegen` makes sure: any bytes are valid.
#[allow(unsafe_code)]
mod pod {
    // SAFETY: see above.
    unsafe impl aya::Pod for super::Control {}
}

/// The processes that an object's programs follow. Initially all, and recording is off.
pub(crate) struct Followed {
    processes: OwnedFd,
    /// The program that marks the threads of a process.
    on_mark: OwnedFd,
    state: Arc<Mutex<State>>,
}

/// The control data of the programs, and its map.
struct State {
    controls: Array<MapData, Control>,
    control: Control,
}

impl State {
    fn tell(&mut self, control: Control) -> io::Result<()> {
        self.control = control;
        self.controls.set(0, control, 0).map_err(io::Error::other)
    }
}

/// Changes the control data of the programs, from any thread.
#[derive(Clone)]
pub(crate) struct Teller(Arc<Mutex<State>>);

impl Teller {
    /// Changes the control data.
    pub fn tell(&self, change: impl FnOnce(&mut Control)) -> io::Result<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut control = state.control;
        change(&mut control);
        state.tell(control)
    }
}

impl Followed {
    /// Takes the maps of an object whose other programs are loaded.
    pub fn take(machine: &Machine, bpf: &mut Ebpf) -> Result<Self, LoadError> {
        Ok(Self {
            on_mark: machine.load_each_task(bpf, "on_mark")?,
            processes: take_descriptor(bpf, "followed")?,
            state: Arc::new(Mutex::new(State {
                controls: take(bpf, "controls")?,
                control: Control::default(),
            })),
        })
    }

    /// A handle for changing the control data.
    pub fn teller(&self) -> Teller {
        Teller(self.state.clone())
    }

    /// Starts recording.
    pub fn begin(&mut self) -> io::Result<()> {
        self.tell(|control| Control { began: 1, ..control })
    }

    /// Turns the recording of off-CPU threads on or off.
    pub fn look_at_switches(&mut self, does: bool) -> io::Result<()> {
        self.tell(|control| Control { off_cpu: does.into(), ..control })
    }

    /// Records all threads that are off the CPU from now on: nothing will report them later.
    pub fn ends(&mut self) -> io::Result<()> {
        self.tell(|control| Control { ends: 1, ..control })
    }

    /// Restricts recording to followed processes.
    pub fn only_some(&mut self) -> io::Result<()> {
        self.tell(|control| Control { follows_some: 1, ..control })
    }

    /// Restricts recording to followed processes, and adds this one, given by its pidfd, with its future children.
    pub fn add(&mut self, pid: BorrowedFd<'_>) -> io::Result<()> {
        self.add_as(pid, 1)
    }

    /// As [`add`](Self::add), with further information on the process for the programs.
    pub fn add_as(&mut self, pid: BorrowedFd<'_>, how: u32) -> io::Result<()> {
        self.only_some()?;
        sys::update_u32(self.processes.as_fd(), key(pid)?, how)?;
        // New threads of a process inherit its mark.
        sys::each_thread(self.on_mark.as_fd(), pid)
    }

    /// Whether a process, given by its pidfd, is followed.
    pub fn has(&self, pid: BorrowedFd<'_>) -> bool {
        key(pid).is_ok_and(|key| sys::has_u32(self.processes.as_fd(), key))
    }

    /// Stops following a process.
    pub fn forget(&mut self, pid: BorrowedFd<'_>) -> io::Result<()> {
        sys::delete(self.processes.as_fd(), key(pid)?)?;
        sys::each_thread(self.on_mark.as_fd(), pid)
    }

    /// Stops recording, and follows all processes again when it restarts.
    pub fn reset(&mut self) -> io::Result<()> {
        self.tell(|_| Control::default())
    }

    /// Stops recording.
    pub fn end(&mut self) -> io::Result<()> {
        self.tell(|control| Control { began: 0, ..control })
    }

    fn tell(&mut self, change: impl FnOnce(Control) -> Control) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let control = change(state.control);
        state.tell(control)
    }
}

/// The key of a task's storage: a descriptor of its process.
fn key(pid: BorrowedFd<'_>) -> io::Result<u32> {
    u32::try_from(pid.as_raw_fd()).map_err(|_| io::ErrorKind::InvalidInput.into())
}
