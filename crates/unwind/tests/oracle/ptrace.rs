//! A process under ptrace, stepped by instruction. Contains all the `unsafe` code of the oracle.
//!
//! ptrace is tied to the thread that started the process, so a [`Tracee`] must stay on its thread (it is not `Send`).

use std::io;
use std::marker::PhantomData;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::{Mutex, PoisonError};

use plumb_unwind::{Avma, LinuxRegisters, Memory, Native, ReadError, Registers, Window};

use super::arch;

/// Register set with the length of scalable vectors (`NT_ARM_SVE`); machines without them have none.
const VECTORS: i32 = 0x405;

/// A traced process; dropping it kills the process.
pub struct Tracee {
    child: Child,
    pid: libc::pid_t,
    _cpu: OwnCpu,
    not_send: PhantomData<*const ()>,
}

/// Type of ptrace's first argument, which depends on the C library.
#[cfg(target_env = "musl")]
type RegisterRequest = libc::c_int;
#[cfg(not(target_env = "musl"))]
type RegisterRequest = libc::c_uint;

/// Result of a step.
#[derive(Debug, PartialEq, Eq)]
pub enum Stop {
    /// One instruction ran, or a signal handler was entered.
    Step,
    /// A signal is about to be delivered; pass it to the next step.
    Signal(i32),
    /// Another program was executed.
    Exec,
    /// A thread was started.
    Thread,
    /// The process ended, with a description.
    Ended(String),
}

impl Tracee {
    /// Starts `command` and stops it at its first instruction. Disables address randomization.
    pub fn start(command: &mut Command) -> io::Result<Tracee> {
        let cpu = OwnCpu::take();
        let trace_me = || {
            // SAFETY: both calls only change attributes of the calling process and take no pointers that are read.
            let traced = unsafe {
                libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
                libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0)
            };
            if traced == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
        };
        // SAFETY: the closure runs between fork and exec and only makes system calls.
        let child = unsafe { command.pre_exec(trace_me) }.spawn()?;
        let pid = libc::pid_t::try_from(child.id()).map_err(io::Error::other)?;
        let mut tracee = Tracee { child, pid, _cpu: cpu, not_send: PhantomData };
        match tracee.wait()? {
            Stop::Step => {}
            other => return Err(io::Error::other(format!("the process did not stop at exec: {other:?}"))),
        }
        tracee.trace_threads(true)?;
        Ok(tracee)
    }

    /// Selects whether new threads stop when they start, so that they can be followed.
    pub fn trace_threads(&mut self, wanted: bool) -> io::Result<()> {
        let threads = if wanted { libc::PTRACE_O_TRACECLONE } else { 0 };
        let options = libc::c_long::from(libc::PTRACE_O_EXITKILL | libc::PTRACE_O_TRACEEXEC | threads);
        // SAFETY: SETOPTIONS takes its options by value.
        check(unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, self.pid, 0, options) })
    }

    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Runs one instruction, after delivering `signal` unless it is 0.
    pub fn step(&mut self, signal: i32) -> io::Result<Stop> {
        // SAFETY: SINGLESTEP takes the signal by value.
        check(unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, self.pid, 0, libc::c_long::from(signal)) })?;
        self.wait()
    }

    /// Returns the program's entry point, as the kernel passes it to the loader.
    pub fn entry(&self) -> Option<u64> {
        const AT_ENTRY: u64 = 9;
        let words = std::fs::read(format!("/proc/{}/auxv", self.pid)).ok()?;
        let (words, _) = words.as_chunks::<8>();
        let mut pairs =
            words.chunks_exact(2).map(|pair| (u64::from_ne_bytes(pair[0]), u64::from_ne_bytes(pair[1])));
        pairs.find_map(|(key, value)| (key == AT_ENTRY).then_some(value))
    }

    /// Lets the process run until it is about to execute the instruction at `address`.
    pub fn run_to(&mut self, address: u64) -> io::Result<()> {
        let mut signal = 0;
        loop {
            match self.run_to_any(&[address], signal)? {
                Stop::Step => return Ok(()),
                Stop::Signal(other) => signal = other,
                other => return Err(io::Error::other(format!("the process did not get there: {other:?}"))),
            }
        }
    }

    /// Lets the process run until it is about to execute an instruction at one of `addresses`, or stops for another
    /// reason, after delivering `signal` unless it is 0.
    pub fn run_to_any(&mut self, addresses: &[u64], signal: i32) -> io::Result<Stop> {
        let mut replaced = Vec::new();
        for &address in addresses {
            let code = self.read_u64(address).ok_or_else(|| io::Error::other("no code there"))?;
            let mut bytes = code.to_le_bytes();
            bytes[..arch::BREAKPOINT.len()].copy_from_slice(arch::BREAKPOINT);
            self.write_code(address, u64::from_le_bytes(bytes))?;
            replaced.push((address, code));
        }
        // SAFETY: CONT takes the signal by value.
        check(unsafe { libc::ptrace(libc::PTRACE_CONT, self.pid, 0, libc::c_long::from(signal)) })?;
        let stop = self.wait()?;
        if let Stop::Ended(_) = stop {
            return Ok(stop);
        }
        for &(address, code) in replaced.iter().rev() {
            self.write_code(address, code)?;
        }
        if stop == Stop::Step && arch::AFTER_BREAKPOINT != 0 {
            self.go_back(arch::AFTER_BREAKPOINT)?;
        }
        Ok(stop)
    }

    fn write_code(&self, address: u64, word: u64) -> io::Result<()> {
        // SAFETY: POKETEXT takes an address in the other process and a word by value.
        check(unsafe { libc::ptrace(libc::PTRACE_POKETEXT, self.pid, address, word) })
    }

    /// Moves the program counter back.
    fn go_back(&self, distance: u64) -> io::Result<()> {
        let mut words = [0; arch::WORDS];
        self.register_set(libc::PTRACE_GETREGSET, libc::NT_PRSTATUS, &mut words)?;
        words[arch::PC_WORD] -= distance;
        self.register_set(libc::PTRACE_SETREGSET, libc::NT_PRSTATUS, &mut words).map(|_| ())
    }

    /// Lets the process run for `time`, after delivering `signal` unless it is 0, and stops it again.
    pub fn run_for(&mut self, time: std::time::Duration, signal: i32) -> io::Result<Stop> {
        // SAFETY: CONT takes the signal by value.
        check(unsafe { libc::ptrace(libc::PTRACE_CONT, self.pid, 0, libc::c_long::from(signal)) })?;
        std::thread::sleep(time);
        // SAFETY: tgkill takes three numbers. If the process has ended, no process is stopped.
        unsafe { libc::syscall(libc::SYS_tgkill, self.child.id(), self.pid, libc::SIGSTOP) };
        self.wait()
    }

    /// After [`Stop::Thread`]: steps the new thread from now on, and lets the old one run.
    pub fn follow_thread(&mut self) -> io::Result<()> {
        let mut thread: libc::c_ulong = 0;
        // SAFETY: GETEVENTMSG writes one `unsigned long`.
        check(unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, self.pid, 0, &raw mut thread) })?;
        // SAFETY: CONT takes the signal, none here, by value.
        check(unsafe { libc::ptrace(libc::PTRACE_CONT, self.pid, 0, 0) })?;
        self.pid = libc::pid_t::try_from(thread).map_err(io::Error::other)?;
        match self.wait()? {
            Stop::Signal(libc::SIGSTOP) => Ok(()),
            other => Err(io::Error::other(format!("the thread did not stop at its start: {other:?}"))),
        }
    }

    fn wait(&mut self) -> io::Result<Stop> {
        let mut status = 0;
        // SAFETY: `status` is a valid place for the result.
        if unsafe { libc::waitpid(self.pid, &mut status, libc::__WALL) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(if libc::WIFEXITED(status) {
            Stop::Ended(format!("exit status {}", libc::WEXITSTATUS(status)))
        } else if libc::WIFSIGNALED(status) {
            Stop::Ended(format!("killed by signal {}", libc::WTERMSIG(status)))
        } else if status >> 8 == libc::SIGTRAP | libc::PTRACE_EVENT_EXEC << 8 {
            Stop::Exec
        } else if status >> 8 == libc::SIGTRAP | libc::PTRACE_EVENT_CLONE << 8 {
            Stop::Thread
        } else {
            match libc::WSTOPSIG(status) {
                libc::SIGTRAP => Stop::Step,
                signal => Stop::Signal(signal),
            }
        })
    }

    /// Returns all integer registers.
    pub fn registers(&self) -> io::Result<Registers> {
        let mut failure = None;
        let stopped = Native::stopped(|set, words| {
            if set != libc::NT_PRSTATUS && set != VECTORS {
                return 0;
            }
            let result = self.register_set(libc::PTRACE_GETREGSET, set, words);
            result.unwrap_or_else(|error| {
                if set == libc::NT_PRSTATUS {
                    failure = Some(error);
                }
                0
            })
        });
        let failure =
            || failure.unwrap_or_else(|| io::Error::other("the program is of another architecture"));
        stopped.map(|stopped| stopped.registers).ok_or_else(failure)
    }

    /// Gets or sets a register set. Returns its size in bytes.
    fn register_set(&self, request: RegisterRequest, set: i32, words: &mut [u64]) -> io::Result<usize> {
        let mut vector = libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: size_of_val(words) };
        // SAFETY: `vector` describes `words`, which outlives the call.
        check(unsafe { libc::ptrace(request, self.pid, libc::c_long::from(set), &raw mut vector) })?;
        Ok(vector.iov_len)
    }

    /// Reads memory; returns the number of bytes read.
    pub fn read(&self, at: u64, buffer: &mut [u8]) -> usize {
        let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        let remote = libc::iovec { iov_base: at as *mut libc::c_void, iov_len: buffer.len() };
        // SAFETY: `local` describes `buffer`, which outlives the call; `remote` is only used by the kernel, in the
        // other process, and the kernel reports unmapped addresses.
        let count = unsafe { libc::process_vm_readv(self.pid, &local, 1, &remote, 1, 0) };
        usize::try_from(count).unwrap_or(0)
    }

    /// Reads the eight bytes at `at`.
    pub fn read_u64(&self, at: u64) -> Option<u64> {
        let mut word = [0; 8];
        (self.read(at, &mut word) == 8).then(|| u64::from_le_bytes(word))
    }
}

impl Drop for Tracee {
    fn drop(&mut self) {
        // Fails if the process has already ended; then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A CPU reserved for one tracer and its process. Switching between the two then does not wake another CPU, which in
/// a virtual machine takes longer than everything else here.
struct OwnCpu(Option<usize>);

static TAKEN: Mutex<Vec<usize>> = Mutex::new(Vec::new());

impl OwnCpu {
    /// Moves this thread, and the processes it starts, to a CPU that no other tracer has; does nothing if all are
    /// taken.
    fn take() -> OwnCpu {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        let free = (0..count).find(|cpu| !taken.contains(cpu));
        taken.extend(free);
        if let Some(cpu) = free {
            // SAFETY: a CPU set is plain bits, for which zeros are valid; the kernel only reads it.
            unsafe {
                let mut set: libc::cpu_set_t = std::mem::zeroed();
                libc::CPU_SET(cpu, &mut set);
                libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
            }
        }
        OwnCpu(free)
    }
}

impl Drop for OwnCpu {
    fn drop(&mut self) {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        taken.retain(|&cpu| Some(cpu) != self.0);
    }
}

fn check(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

const PAGE: usize = 4096;

/// The stopped process's memory, cached by page. Valid only until the next step.
pub struct Pages<'a> {
    tracee: &'a Tracee,
    pages: &'a mut PageStore,
}

/// Storage for pages, reused from step to step.
#[derive(Default)]
pub struct PageStore {
    pages: Vec<(u64, [u8; PAGE], usize)>,
    used: usize,
    /// Address and content of the window, which begins at the stack pointer.
    window: (u64, Vec<u64>),
}

/// Number of words in the window. Most stacks are longer, so walks leave the window.
const WINDOW: usize = 128;

impl<'a> Pages<'a> {
    pub fn new(tracee: &'a Tracee, pages: &'a mut PageStore, sp: u64) -> Self {
        pages.used = 0;
        let mut bytes = [0; 8 * WINDOW];
        let length = if sp.is_multiple_of(8) { tracee.read(sp, &mut bytes) } else { 0 };
        let (words, _) = bytes[..length].as_chunks();
        pages.window.0 = sp;
        pages.window.1.clear();
        pages.window.1.extend(words.iter().map(|word| u64::from_le_bytes(*word)));
        Pages { tracee, pages }
    }

    /// Returns the readable bytes of a page.
    fn page(&mut self, page: u64) -> &[u8] {
        let store = &mut *self.pages;
        let known = store.pages[..store.used].iter().position(|(at, ..)| *at == page);
        let index = known.unwrap_or_else(|| {
            if store.used == store.pages.len() {
                store.pages.push((0, [0; PAGE], 0));
            }
            let (at, bytes, length) = &mut store.pages[store.used];
            *at = page;
            *length = self.tracee.read(page, bytes);
            store.used += 1;
            store.used - 1
        });
        let (_, bytes, length) = &store.pages[index];
        &bytes[..*length]
    }
}

/// The part of memory that a kernel copies with a sample: everything but the bytes just below the stack pointer.
pub struct Copied<'a> {
    pages: Pages<'a>,
    sp: u64,
}

impl<'a> Copied<'a> {
    pub fn new(tracee: &'a Tracee, pages: &'a mut PageStore, sp: u64) -> Self {
        Copied { pages: Pages::new(tracee, pages, sp), sp }
    }
}

impl Memory for Copied<'_> {
    fn read_u64(&mut self, at: Avma) -> Result<u64, ReadError> {
        // The interrupted stack of a signal handler may be further below.
        let below = self.sp.wrapping_sub(at.0);
        if (1..=PAGE as u64).contains(&below) {
            return Err(ReadError::Unreadable);
        }
        self.pages.read_u64(at)
    }

    fn read_code(&mut self, at: Avma, to: &mut [u8]) -> bool {
        self.pages.read_code(at, to)
    }

    fn window(&self) -> Option<Window<'_>> {
        self.pages.window()
    }
}

impl Memory for Pages<'_> {
    fn read_u64(&mut self, at: Avma) -> Result<u64, ReadError> {
        let offset = at.0 as usize % PAGE;
        if offset <= PAGE - 8 {
            let page = self.page(at.0 - offset as u64);
            let word = page.get(offset..).and_then(|rest| rest.first_chunk()).ok_or(ReadError::Unreadable)?;
            return Ok(u64::from_le_bytes(*word));
        }
        self.tracee.read_u64(at.0).ok_or(ReadError::Unreadable)
    }

    fn read_code(&mut self, at: Avma, to: &mut [u8]) -> bool {
        self.tracee.read(at.0, to) == to.len()
    }

    fn window(&self) -> Option<Window<'_>> {
        let (base, words) = &self.pages.window;
        Some(Window { base: Avma(*base), words })
    }
}
