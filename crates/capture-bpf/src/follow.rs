//! Who is followed, as the programs are told (bpf/follow.h).

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

/// Whom the programs of an object follow. At first everybody, and nothing has begun.
pub(crate) struct Followed {
    processes: OwnedFd,
    /// What gives the threads of a process its mark.
    on_mark: OwnedFd,
    state: Arc<Mutex<State>>,
}

/// What the programs are told, and where.
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

/// Tells the programs what is wanted of them, from any thread.
#[derive(Clone)]
pub(crate) struct Teller(Arc<Mutex<State>>);

impl Teller {
    /// Changes what they are told.
    pub fn tell(&self, change: impl FnOnce(&mut Control)) -> io::Result<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut control = state.control;
        change(&mut control);
        state.tell(control)
    }
}

impl Followed {
    /// Takes the maps of an object, whose other programs are loaded.
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

    /// What tells the programs.
    pub fn teller(&self) -> Teller {
        Teller(self.state.clone())
    }

    /// From now on what the programs see counts.
    pub fn begin(&mut self) -> io::Result<()> {
        self.tell(|control| Control { began: 1, ..control })
    }

    /// Looks at who is off the processor, or no more.
    pub fn look_at_switches(&mut self, does: bool) -> io::Result<()> {
        self.tell(|control| Control { off_cpu: does.into(), ..control })
    }

    /// Looks at all that are off the processor from now on: nobody is going to tell of them later.
    pub fn ends(&mut self) -> io::Result<()> {
        self.tell(|control| Control { ends: 1, ..control })
    }

    /// Keeps to processes that are followed.
    pub fn only_some(&mut self) -> io::Result<()> {
        self.tell(|control| Control { follows_some: 1, ..control })
    }

    /// Keeps to this process, by its pidfd, with what it forks from now on, and to others that are told.
    pub fn add(&mut self, pid: BorrowedFd<'_>) -> io::Result<()> {
        self.add_as(pid, 1)
    }

    /// Likewise, with what the programs are to know of the process besides.
    pub fn add_as(&mut self, pid: BorrowedFd<'_>, how: u32) -> io::Result<()> {
        self.only_some()?;
        sys::update_u32(self.processes.as_fd(), key(pid)?, how)?;
        // Threads that it makes from now on have the mark from the beginning.
        sys::each_thread(self.on_mark.as_fd(), pid)
    }

    /// Whether a process is followed, by its pidfd.
    pub fn has(&self, pid: BorrowedFd<'_>) -> bool {
        key(pid).is_ok_and(|key| sys::has_u32(self.processes.as_fd(), key))
    }

    /// Follows a process no longer.
    pub fn forget(&mut self, pid: BorrowedFd<'_>) -> io::Result<()> {
        sys::delete(self.processes.as_fd(), key(pid)?)?;
        sys::each_thread(self.on_mark.as_fd(), pid)
    }

    /// Nothing counts from now on, and everybody is followed again once it does.
    pub fn reset(&mut self) -> io::Result<()> {
        self.tell(|_| Control::default())
    }

    /// Nothing counts from now on.
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
