//! CPU time and run-queue wait of tasks that exit (Documentation/accounting/taskstats.rst): for root, for the whole
//! machine, over netlink.
//!
//! Messages that do not fit the buffer are lost silently, so callers must cope without a task's times. Elsewhere: the choice of tasks.

#![allow(unsafe_code)]

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use crate::procfs::RunTimes;

/// Receive buffer size in bytes: holds some thousand task exits.
const ROOM: libc::c_int = 8 << 20;
/// Longest message, in bytes.
const LONGEST: usize = 8 << 10;
/// Time to wait for a reply; the kernel replies at once.
const PATIENCE: Duration = Duration::from_secs(1);

/// Message type of the generic netlink controller (linux/genetlink.h), its command to find a family, and the attributes for its name and number.
const CONTROL: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// linux/taskstats.h: the command, the attribute for the CPUs whose tasks are reported, and those of a report.
const GET: u8 = 1;
const REGISTER_CPUMASK: u16 = 3;
const OF_TASK: u16 = 4;
const TASK_ID: u16 = 1;
const STATS: u16 = 3;
/// Offsets in `struct taskstats` of the run-queue wait (`cpu_delay_total`) and the CPU time (`cpu_run_virtual_total`).
const WAITED_AT: usize = 24;
const RAN_AT: usize = 72;

/// Sizes of the message headers (`nlmsghdr`, `genlmsghdr`), and of the attribute header.
const HEADER: usize = 16;
const GENERIC: usize = 4;
const ATTRIBUTE: usize = 4;

/// Receives the exits of tasks.
#[derive(Debug)]
pub struct Ends(UnixDatagram);

impl Ends {
    /// Starts listening. Fails for all but root, in containers, and if the kernel does not account.
    pub fn listen() -> io::Result<Self> {
        let ends = Ends(socket()?);
        ends.0.set_read_timeout(Some(PATIENCE))?;
        let answer = ends.ask(CONTROL, GET_FAMILY, (FAMILY_NAME, b"TASKSTATS\0"))?;
        let family = attributes(answer.get(HEADER + GENERIC..).unwrap_or_default())
            .find(|&(kind, _)| kind == FAMILY_ID)
            .and_then(|(_, value)| Some(u16::from_ne_bytes(*value.first_chunk()?)))
            .ok_or(io::ErrorKind::InvalidData)?;
        let mut cpus = fs::read_to_string("/sys/devices/system/cpu/possible")?.trim_end().to_owned();
        cpus.push('\0');
        ends.ask(family, GET, (REGISTER_CPUMASK, cpus.as_bytes()))?;
        ends.0.set_nonblocking(true)?;
        Ok(ends)
    }

    /// Passes on the tasks that have exited since the last call, with their times.
    pub fn take(&self, mut each: impl FnMut(u32, RunTimes)) {
        let mut buffer = [0; LONGEST];
        loop {
            match self.0.recv(&mut buffer) {
                Ok(length) => {
                    messages(&buffer[..length]).filter_map(ended).for_each(|(tid, times)| each(tid, times));
                }
                // Some messages were lost; later ones are available.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {}
                Err(_) => return,
            }
        }
    }

    /// Sends a command with one attribute. Returns the reply, or its error.
    fn ask(&self, family: u16, command: u8, (kind, value): (u16, &[u8])) -> io::Result<Vec<u8>> {
        let mut message = vec![0; HEADER];
        message.extend([command, 1, 0, 0]);
        message.extend(((ATTRIBUTE + value.len()) as u16).to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend(value);
        message.resize(message.len().next_multiple_of(4), 0);
        let length = message.len() as u32;
        message[..4].copy_from_slice(&length.to_ne_bytes());
        message[4..6].copy_from_slice(&family.to_ne_bytes());
        message[6..8].copy_from_slice(&((libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16).to_ne_bytes());
        self.0.send(&message)?;
        let mut answer = Vec::new();
        loop {
            let mut buffer = [0; LONGEST];
            let length = self.0.recv(&mut buffer)?;
            for message in messages(&buffer[..length]) {
                match message_kind(message) {
                    // The acknowledgement comes last; an error replaces it.
                    Some(kind) if kind == libc::NLMSG_ERROR as u16 => {
                        let code = message.get(HEADER..).and_then(|rest| rest.first_chunk());
                        return match code.map_or(-libc::EINVAL, |code| i32::from_ne_bytes(*code)) {
                            0 => Ok(answer),
                            code => Err(io::Error::from_raw_os_error(-code)),
                        };
                    }
                    Some(kind) if kind == family => answer = message.to_vec(),
                    _ => {}
                }
            }
        }
    }
}

/// Opens a generic netlink socket. It is not a Unix socket, but sends and receives like one.
fn socket() -> io::Result<UnixDatagram> {
    let flags = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
    // SAFETY: takes its arguments by value.
    let socket = unsafe { libc::socket(libc::AF_NETLINK, flags, libc::NETLINK_GENERIC) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was just opened, and nobody else has it.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    let room = ROOM;
    // SAFETY: `room` is a live integer of the given length. A failure is ignored.
    unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVBUFFORCE,
            (&raw const room).cast(),
            size_of_val(&room) as libc::socklen_t,
        )
    };
    Ok(socket.into())
}

/// Splits the received bytes into messages.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(*bytes.first_chunk()?) as usize;
        let message = bytes.get(..length).filter(|message| message.len() >= HEADER)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(message)
    })
}

fn message_kind(message: &[u8]) -> Option<u16> {
    Some(u16::from_ne_bytes(*message.get(4..)?.first_chunk()?))
}

/// Iterates over attributes with their types.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(*bytes.first_chunk()?));
        let kind = u16::from_ne_bytes(*bytes.get(2..)?.first_chunk()?);
        let value = bytes.get(ATTRIBUTE..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// Parses the report about a task.
fn ended(message: &[u8]) -> Option<(u32, RunTimes)> {
    let (_, task) = attributes(message.get(HEADER + GENERIC..)?).find(|&(kind, _)| kind == OF_TASK)?;
    let value = |wanted| attributes(task).find(|&(kind, _)| kind == wanted).map(|(_, value)| value);
    let stats = value(STATS)?;
    let number = |at: usize| Some(u64::from_ne_bytes(*stats.get(at..)?.first_chunk()?));
    let times = RunTimes { ran_ns: number(RAN_AT)?, waited_ns: number(WAITED_AT)? };
    // Older kernels only account if enabled.
    (times.ran_ns > 0).then_some((u32::from_ne_bytes(*value(TASK_ID)?.first_chunk()?), times))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with the times that a thread reads about itself as it ends.
    #[test]
    fn the_end_of_a_thread_is_told_with_its_times() {
        use plumb_fixtures::{Requirement, needs, skip};
        if !needs(Requirement::Root) {
            return;
        }
        if !std::path::Path::new("/proc/sys/kernel/task_delayacct").exists() {
            return skip(Requirement::Kernel, "the kernel accounts for no delays of tasks");
        }
        let ends = Ends::listen().expect("root is told");
        let work = || {
            let mut sum = 0_u64;
            while crate::procfs::run_times(std::process::id(), tid())
                .is_none_or(|times| times.ran_ns < 20_000_000)
            {
                sum = std::hint::black_box(sum + 1);
            }
            (tid(), crate::procfs::run_times(std::process::id(), tid()))
        };
        let (tid, own) = std::thread::spawn(work).join().expect("it ends");
        let own = own.expect("it ran");
        let mut told = None;
        for _ in 0..100 {
            ends.take(|other, times| told = told.or((other == tid).then_some(times)));
            if told.is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let told = told.expect("the kernel tells of it");
        assert!(told.ran_ns >= own.ran_ns && told.ran_ns < own.ran_ns + 20_000_000, "{told:?} {own:?}");
        assert!(told.waited_ns >= own.waited_ns, "{told:?} {own:?}");
    }

    fn tid() -> u32 {
        // SAFETY: takes no arguments.
        unsafe { libc::gettid() as u32 }
    }

    #[test]
    fn what_is_cut_off_is_nothing() {
        let mut message = 100_u32.to_ne_bytes().to_vec();
        message.resize(60, 7);
        assert_eq!(messages(&message).count(), 0);
        assert_eq!(messages(&[3, 0]).count(), 0);
        assert_eq!(messages(&[0; 64]).count(), 0);
        assert_eq!(attributes(&[200, 0, 1, 0, 5]).count(), 0);
        assert_eq!(attributes(&[0; 12]).count(), 0);
        assert_eq!(ended(&[0; 20]), None);
    }
}
