//! `perf_event_open(2)` and the ioctls of its descriptors.

#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use perf_event_open_sys::bindings::{
    PERF_FLAG_FD_CLOEXEC, PERF_FLAG_PID_CGROUP, PERF_FORMAT_LOST, PERF_FORMAT_TOTAL_TIME_ENABLED,
    PERF_FORMAT_TOTAL_TIME_RUNNING, perf_event_attr,
};
use perf_event_open_sys::ioctls;

/// The tasks that an event counts.
#[derive(Clone, Copy, Debug)]
pub enum Whom<'a> {
    /// The thread with this ID; 0: the calling one.
    Thread(u32),
    /// Every thread on the CPU.
    Everyone,
    /// The threads in the cgroup with this directory, and below it.
    Cgroup(BorrowedFd<'a>),
}

/// An open event. Closing it ends the event; records it wrote to a ring stay there.
#[derive(Debug)]
pub(crate) struct Event {
    file: File,
    cpu: u32,
    /// The fields that a read returns (`PERF_FORMAT_*`).
    read_format: u64,
    /// Keeps a program attached that was attached with a number.
    link: Option<OwnedFd>,
}

/// The fields of `union bpf_attr` for `BPF_LINK_CREATE` (include/uapi/linux/bpf.h), for a perf event.
#[repr(C)]
struct Link {
    program: u32,
    event: u32,
    attach_type: u32,
    flags: u32,
    cookie: u64,
}

/// The fields of `union bpf_attr` for `BPF_MAP_UPDATE_ELEM`.
#[repr(C)]
struct Update {
    map: u32,
    zero: u32,
    key: u64,
    value: u64,
    flags: u64,
}

const BPF_MAP_UPDATE_ELEM: libc::c_long = 2;
const BPF_LINK_CREATE: libc::c_long = 28;
const BPF_PERF_EVENT: u32 = 41;

impl Event {
    /// Opens an event on CPU `cpu`.
    pub fn open(attr: &perf_event_attr, whom: Whom<'_>, cpu: u32) -> io::Result<Self> {
        let mut attr = *attr;
        let number = i32::try_from(cpu).map_err(|_| io::ErrorKind::InvalidInput)?;
        let (pid, flag) = match whom {
            Whom::Thread(tid) => (i32::try_from(tid).map_err(|_| io::ErrorKind::InvalidInput)?, 0),
            Whom::Everyone => (-1, 0),
            Whom::Cgroup(directory) => (directory.as_raw_fd(), PERF_FLAG_PID_CGROUP),
        };
        let flags = (PERF_FLAG_FD_CLOEXEC | flag).into();
        // SAFETY: `attr` is a live, initialised perf_event_attr whose size field says its size; the kernel reads it
        // and writes no more than its size field. No group leader (-1).
        let fd = unsafe { perf_event_open_sys::perf_event_open(&mut attr, pid, number, -1, flags) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just made this descriptor for us, and nobody else owns it.
        let file = unsafe { File::from_raw_fd(fd) };
        Ok(Self { file, cpu, read_format: attr.read_format, link: None })
    }

    /// The CPU on which it counts.
    pub fn cpu(&self) -> u32 {
        self.cpu
    }

    /// Starts counting.
    pub fn enable(&self) -> io::Result<()> {
        // SAFETY: takes no pointer.
        check(unsafe { ioctls::ENABLE(self.file.as_raw_fd(), 0) })
    }

    /// Stops counting. Events that children inherited stop as well.
    pub fn disable(&self) -> io::Result<()> {
        // SAFETY: takes no pointer.
        check(unsafe { ioctls::DISABLE(self.file.as_raw_fd(), 0) })
    }

    /// Attaches a program that decides on each sample: those for which it returns 0 are not written.
    pub fn attach(&self, program: BorrowedFd<'_>) -> io::Result<()> {
        let program = u64::try_from(program.as_raw_fd()).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: takes a descriptor, no pointer.
        check(unsafe { ioctls::SET_BPF(self.file.as_raw_fd(), program as _) })
    }

    /// Attaches a program that can ask for this number to know which event a sample belongs to.
    pub fn attach_as(&mut self, program: BorrowedFd<'_>, number: u64) -> io::Result<()> {
        let descriptor = |fd: i32| u32::try_from(fd).map_err(|_| io::ErrorKind::InvalidInput);
        let attr = Link {
            program: descriptor(program.as_raw_fd())?,
            event: descriptor(self.file.as_raw_fd())?,
            attach_type: BPF_PERF_EVENT,
            flags: 0,
            cookie: number,
        };
        // SAFETY: the kernel reads at most the size of `attr`, which holds no addresses.
        let fd = unsafe { libc::syscall(libc::SYS_bpf, BPF_LINK_CREATE, &raw const attr, size_of::<Link>()) };
        let fd = i32::try_from(fd).ok().filter(|&fd| fd >= 0).ok_or_else(io::Error::last_os_error)?;
        // SAFETY: the kernel has just made this descriptor for us, and nobody else owns it.
        self.link = Some(unsafe { OwnedFd::from_raw_fd(fd) });
        Ok(())
    }

    /// Enters it in a map of events, by CPU, through which programs write records.
    pub fn enter_in(&self, map: BorrowedFd<'_>) -> io::Result<()> {
        let address = |word: &u32| (&raw const *word).addr() as u64;
        let descriptor = |fd: i32| u32::try_from(fd).map_err(|_| io::ErrorKind::InvalidInput);
        let (map, event) = (descriptor(map.as_raw_fd())?, descriptor(self.file.as_raw_fd())?);
        let attr = Update { map, zero: 0, key: address(&self.cpu), value: address(&event), flags: 0 };
        // SAFETY: the kernel reads no more than the size of `attr`, and four bytes of each of key and value, as maps of events have
        // them: these live until after the call.
        check(unsafe {
            libc::syscall(libc::SYS_bpf, BPF_MAP_UPDATE_ELEM, &raw const attr, size_of::<Update>())
        } as i32)
    }

    /// Sends this event's records to the ring of `owner`, which must be an event of the same CPU and clock.
    pub fn output_to(&self, owner: &Event) -> io::Result<()> {
        // SAFETY: takes a descriptor, no pointer.
        check(unsafe { ioctls::SET_OUTPUT(self.file.as_raw_fd(), owner.file.as_raw_fd()) })
    }

    /// The ID in samples of this event, and of events inherited from it.
    pub fn id(&self) -> Option<u64> {
        let mut id = 0;
        // SAFETY: the kernel writes a u64 to where the pointer leads, which lives through the call.
        check(unsafe { ioctls::ID(self.file.as_raw_fd(), &mut id) }).ok()?;
        Some(id)
    }

    /// Sets the count between two samples, from now on. Events inherited by children keep their period.
    pub fn set_period(&self, period: u64) -> io::Result<()> {
        let address = (&raw const period).expose_provenance() as u64;
        // SAFETY: the kernel reads a u64 from this address, which is that of `period` and lives through the call. (The crate has the
        // argument as a number.)
        check(unsafe { ioctls::PERIOD(self.file.as_raw_fd(), address) })
    }

    /// Number of records of this event lost because the ring was full, if the kernel counts that (6.0 and newer).
    pub fn lost(&self) -> Option<u64> {
        self.read(PERF_FORMAT_LOST)
    }

    /// The event's count, sampled or not.
    pub fn counted(&self) -> Option<u64> {
        self.read(0)
    }

    /// The count of an event opened with time fields, and the nanoseconds for which it was enabled and for
    /// which it ran (`PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING`).
    pub fn counted_for(&self) -> Option<[u64; 3]> {
        let words = self.words()?;
        let at = |bit: u32| words.get(self.place(bit)?).copied();
        Some([words[0], at(PERF_FORMAT_TOTAL_TIME_ENABLED)?, at(PERF_FORMAT_TOTAL_TIME_RUNNING)?])
    }

    /// The word that this bit of `read_format` adds to a read; 0: the count.
    fn read(&self, bit: u32) -> Option<u64> {
        self.words()?.get(self.place(bit)?).copied()
    }

    fn words(&self) -> Option<[u64; 4]> {
        let mut bytes = [0; 32];
        let read = (&self.file).read(&mut bytes).ok()?;
        let (words, _) = bytes.as_chunks::<8>();
        (read > 0).then(|| [0, 1, 2, 3].map(|index: usize| u64::from_ne_bytes(words[index])))
    }

    /// Index of the word that a bit adds: after the count, in the order of the bits (perf_event_open(2)).
    fn place(&self, bit: u32) -> Option<usize> {
        let bit = u64::from(bit);
        (bit == 0 || self.read_format & bit != 0)
            .then(|| if bit == 0 { 0 } else { 1 + (self.read_format & (bit - 1)).count_ones() as usize })
    }

    /// The descriptor, for mapping and polling.
    pub fn file(&self) -> &File {
        &self.file
    }
}

fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
