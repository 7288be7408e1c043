//! Stops threads and copies what unwinding needs.

use std::time::{Duration, Instant};

use plumb_ingest::{CopiedMemory, ProcessMemory};
use plumb_interpreters::{FrameLists, NoGoroutines, ScriptFrame, Threads, Unreadable};
use plumb_process::{WaitingAt, parse_maps, read_memory};
use plumb_unwind::{
    Architecture, Avma, LinuxRegisters, Memory, Native, ReadError, Registers, StoppedRegisters,
};

use super::ReplacedReturns;
use super::goroutines::{self, CopiedGoroutines};
use super::refusal::{NoStack, Refusal};
use super::script::{self, Placed};
use crate::trace::Traced;

/// Most bytes copied at the stack pointer. The rest is read for the few stacks that are deeper.
const STACK: u64 = 1 << 20;
/// Most bytes copied at any other place that a stack leads to.
const PLACE: u64 = 16 << 20;
/// Bytes of code copied on either side of the program counter.
const CODE: u64 = 16;
/// Time limit for threads to stop. A thread in uninterruptible sleep doesn't stop, and is released.
const PATIENCE: Duration = Duration::from_millis(250);

/// The data to copy.
#[derive(Default)]
pub(super) struct Wanted {
    /// Only this thread; `None`: all.
    pub(super) thread: Option<u32>,
    /// Start addresses of memory to copy, besides that at the stack pointer.
    pub(super) places: Vec<u64>,
    /// Whether to read frames of interpreted programs.
    pub(super) script: bool,
    /// Reader of the return addresses to restore in the copy, if any are replaced.
    pub(super) returns: Option<ReplacedReturns>,
}

/// A process as it was while all its threads were stopped.
pub(super) struct CopiedProcess {
    pub(super) threads: Vec<CopiedThread>,
    /// Text of its maps file.
    pub(super) maps: Vec<u8>,
    /// The interpreter in the process, if any.
    pub(super) interpreter: Option<Placed>,
    /// The goroutines that no thread runs, if it is a program of Go.
    pub(super) goroutines: Option<Result<CopiedGoroutines, NoGoroutines>>,
    /// Time from the first thread's stop to the last one's continuation.
    pub(super) held: Duration,
}

/// A copied thread.
pub(super) struct CopiedThread {
    pub(super) tid: u32,
    pub(super) name: String,
    pub(super) state: Option<char>,
    pub(super) kernel: Vec<String>,
    pub(super) stack: Result<StackCopy, NoStack>,
    /// Frames of the interpreted program, innermost first.
    pub(super) script: Result<Vec<ScriptFrame>, Unreadable>,
}

/// Registers and stack of a thread.
#[derive(Debug)]
pub(super) struct StackCopy {
    pub(super) registers: Registers,
    pub(super) in_system_call: bool,
    places: Vec<(u64, Vec<u8>)>,
    /// Code around the program counter, with its start address.
    code: (u64, Vec<u8>),
    missed: Option<u64>,
}

impl StackCopy {
    /// The stack of a goroutine that no thread runs, from the stack pointer on.
    pub(super) fn of_parked(registers: &Registers, stack: Vec<u8>) -> Self {
        let (registers, places) = (*registers, vec![(registers.sp(), stack)]);
        Self { registers, in_system_call: false, places, code: (0, Vec::new()), missed: None }
    }

    /// An address that unwinding asked for and that is in no copied place.
    pub(super) fn missed(&self) -> Option<u64> {
        self.missed
    }

    /// Puts the original return addresses in place of those that lead to return probes (uretprobes). `replaced`: stack addresses, each with
    /// its original return address. After a jump out of a function an address may still be listed, and its word be another value by now.
    fn restore_returns(&mut self, replaced: &[(u64, u64)]) {
        for (base, bytes) in &mut self.places {
            for &(at, pc) in replaced {
                let offset = usize::try_from(at.wrapping_sub(*base)).unwrap_or(usize::MAX);
                if let Some(word) = bytes.get_mut(offset..).and_then(<[u8]>::first_chunk_mut)
                    && Native::is_probed_return(u64::from_le_bytes(*word))
                {
                    *word = pc.to_le_bytes();
                }
            }
        }
    }

    /// Memory of its process: the copied stack, the rest as it is now.
    pub(super) fn memory(&self, pid: u32) -> CopiedMemory<'_, Vec<u8>> {
        CopiedMemory { parts: &self.places, process: Some(ProcessMemory(pid)) }
    }
}

impl Memory for StackCopy {
    #[inline]
    fn read_u64(&mut self, at: Avma) -> Result<u64, ReadError> {
        for (base, bytes) in &self.places {
            let offset = usize::try_from(at.0.wrapping_sub(*base)).unwrap_or(usize::MAX);
            if let Some(word) = bytes.get(offset..).and_then(<[u8]>::first_chunk) {
                return Ok(u64::from_le_bytes(*word));
            }
        }
        self.missed = Some(at.0);
        Err(ReadError::Unreadable)
    }

    fn read_code(&mut self, at: Avma, to: &mut [u8]) -> bool {
        let (base, bytes) = &self.code;
        let offset = usize::try_from(at.0.wrapping_sub(*base)).unwrap_or(usize::MAX);
        let code = bytes.get(offset..).and_then(|rest| rest.get(..to.len()));
        code.map(|code| to.copy_from_slice(code)).is_some()
    }
}

/// Copies the requested data of a process.
pub(super) fn copy(pid: u32, wanted: Wanted) -> Result<CopiedProcess, Refusal> {
    // The kernel releases a thread's tracees when that thread ends, including those that could not be stopped.
    let tracer = std::thread::Builder::new().name("tracer".into()).spawn(move || copy_here(pid, &wanted));
    let joined = tracer.map_err(|error| Refusal::System { pid, error })?.join();
    joined.unwrap_or(Err(Refusal::Gone(pid)))
}

fn copy_here(pid: u32, wanted: &Wanted) -> Result<CopiedProcess, Refusal> {
    plumb_process::can_observe().map_err(Refusal::Machine)?;
    if plumb_process::is_proc_foreign() {
        return Err(Refusal::ForeignProc(pid));
    }
    let mut threads: Vec<Thread> = Vec::new();
    let tids = tids(pid, wanted);
    if tids.is_empty() {
        return Err(Refusal::NoSuchProcess(pid));
    }
    for tid in tids {
        threads.push(Thread::look(pid, tid));
    }
    // Before anything is stopped: finding it takes longer than reading its frames.
    let interpreter = wanted.script.then(|| script::find(pid)).flatten();
    let goroutine_list = wanted.thread.is_none().then(|| script::goroutines(pid)).flatten();
    let start = stop_all(pid, wanted, &mut threads)?;
    let maps = plumb_process::mappings(pid).unwrap_or_default();
    let copies: Vec<_> = threads.iter().map(|thread| thread.copy(pid, &maps, wanted)).collect();
    if let Some((interpreter, bias)) = &interpreter
        && let Some(lists) = interpreter.lists()
    {
        let states = lists.threads(&ProcessMemory(pid), *bias);
        threads.iter_mut().for_each(|thread| thread.read_script(pid, lists, &states));
    }
    let goroutines = goroutine_list.map(|found| found.and_then(|list| goroutines::copy(pid, &list)));
    threads.iter_mut().for_each(|thread| drop(thread.traced.take()));
    let held = start.elapsed();
    if plumb_process::state(pid, pid).is_none() {
        return Err(Refusal::Gone(pid));
    }
    let threads = threads.into_iter().zip(copies);
    Ok(CopiedProcess {
        threads: threads.map(|(thread, stack)| thread.finish(stack)).collect(),
        maps,
        interpreter,
        goroutines,
        held,
    })
}

fn tids(pid: u32, wanted: &Wanted) -> Vec<u32> {
    let mut tids = wanted.thread.map_or_else(|| plumb_process::threads(pid), |tid| vec![tid]);
    tids.sort_unstable();
    tids
}

/// Stops all threads, including new ones. Returns the time of the first stop request.
fn stop_all(pid: u32, wanted: &Wanted, threads: &mut Vec<Thread>) -> Result<Instant, Refusal> {
    let start = Instant::now();
    let deadline = start + PATIENCE;
    loop {
        for thread in threads.iter_mut().filter(|thread| thread.traced.is_none() && thread.failed.is_none()) {
            thread.seize(pid)?;
        }
        for traced in threads.iter_mut().filter_map(|thread| thread.traced.as_mut()) {
            traced.wait(deadline);
        }
        // Only a thread that was not stopped yet can have started others.
        let known = threads.len();
        let new =
            tids(pid, wanted).into_iter().filter(|tid| !threads.iter().any(|thread| thread.tid == *tid));
        let new: Vec<Thread> = new.map(|tid| Thread::look(pid, tid)).collect();
        threads.extend(new);
        if threads.len() == known || Instant::now() >= deadline {
            return Ok(start);
        }
    }
}

/// A thread on its way to being copied.
struct Thread {
    tid: u32,
    name: String,
    state: Option<char>,
    kernel: Vec<String>,
    /// The place in the kernel where it waited, before it was stopped.
    waited_at: Option<WaitingAt>,
    traced: Option<Traced>,
    failed: Option<NoStack>,
    script: Result<Vec<ScriptFrame>, Unreadable>,
}

impl Thread {
    /// Inspects a thread that is not stopped yet. Once stopped, its kernel stack would be that of the stop.
    fn look(pid: u32, tid: u32) -> Self {
        let waited_at = plumb_process::waits_at(pid, tid);
        let kernel = waited_at.and_then(|_| plumb_process::kernel_stack(pid, tid)).unwrap_or_default();
        let state = plumb_process::state(pid, tid);
        let name = plumb_process::comm(pid, tid).unwrap_or_default();
        let name = String::from_utf8_lossy(&name).into_owned();
        Self { tid, name, state, kernel, waited_at, traced: None, failed: None, script: Ok(Vec::new()) }
    }

    /// Takes control of the thread and asks it to stop. An error: this process can't be inspected at all.
    fn seize(&mut self, pid: u32) -> Result<(), Refusal> {
        if matches!(self.state, Some('Z' | 'X') | None) {
            self.failed = Some(NoStack::Ended);
            return Ok(());
        }
        match Traced::seize(self.tid).and_then(|traced| traced.interrupt().map(|()| traced)) {
            Ok(traced) => self.traced = Some(traced),
            Err(_) if plumb_process::executable(pid).is_none() && is_kernel_thread(pid) => {
                self.failed = Some(NoStack::KernelThread);
            }
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => self.failed = Some(NoStack::Ended),
            Err(_) if matches!(plumb_process::state(pid, self.tid), Some('Z' | 'X') | None) => {
                self.failed = Some(NoStack::Ended);
            }
            Err(error) => return Err(Refusal::of(pid, error)),
        }
        Ok(())
    }

    fn copy(&self, pid: u32, maps: &[u8], wanted: &Wanted) -> Result<StackCopy, NoStack> {
        if let Some(why) = self.failed {
            return Err(why);
        }
        let traced = self.traced.as_ref().ok_or(NoStack::Ended)?;
        if !traced.is_stopped() {
            let gone = matches!(plumb_process::state(pid, self.tid), Some('Z' | 'X') | None);
            return if gone { Err(NoStack::Ended) } else { self.copy_waiting(pid, maps, wanted) };
        }
        let StoppedRegisters { registers, in_system_call, .. } = traced.held().ok_or(NoStack::Not64Bit)?;
        Ok(self.copy_at(pid, maps, wanted, registers, in_system_call))
    }

    /// Copies the stack of a thread that waits in the kernel and does not stop: the stack does not change while it waits there. The kernel
    /// shows only a few of its registers. Callers are found even so, unless a rule needs another register that no frame before has saved.
    fn copy_waiting(&self, pid: u32, maps: &[u8], wanted: &Wanted) -> Result<StackCopy, NoStack> {
        let at = self.waited_at.ok_or(NoStack::DoesNotStop)?;
        let stack = self.copy_at(pid, maps, wanted, registers_of(at), at.arguments.is_some());
        let waits_still = plumb_process::waits_at(pid, self.tid) == self.waited_at;
        if waits_still { Ok(stack) } else { Err(NoStack::DoesNotStop) }
    }

    fn copy_at(
        &self,
        pid: u32,
        maps: &[u8],
        wanted: &Wanted,
        registers: Registers,
        in_system_call: bool,
    ) -> StackCopy {
        let start = registers.sp().saturating_sub(Native::RED_ZONE);
        let mut places: Vec<_> = piece(pid, maps, start, STACK).into_iter().collect();
        places.extend(wanted.places.iter().filter_map(|&at| piece(pid, maps, at, PLACE)));
        let code = code_around(pid, registers.ip());
        let mut copy = StackCopy { registers, in_system_call, places, code, missed: None };
        if let Some(returns) = &wanted.returns {
            copy.restore_returns(&returns(self.tid));
        }
        copy
    }

    /// Reads the script frames of a stopped thread. `states`: addresses of the interpreter's thread states.
    fn read_script(&mut self, pid: u32, lists: &dyn FrameLists, states: &Result<Threads, Unreadable>) {
        let held = self.traced.as_ref().filter(|traced| traced.is_stopped()).and_then(Traced::held);
        let Some(held) = held else { return };
        self.script = match states {
            Ok(states) => match states.state(held.thread_pointer, self.tid == pid) {
                Some(state) => lists.frames(&ProcessMemory(pid), state),
                None => Ok(Vec::new()),
            },
            Err(error) => Err(*error),
        };
    }

    fn finish(self, stack: Result<StackCopy, NoStack>) -> CopiedThread {
        // If it moved on between the two inspections, it does not wait there any more.
        let same = match &stack {
            Ok(stack) => self
                .waited_at
                .is_some_and(|at| (at.sp, at.pc) == (stack.registers.sp(), stack.registers.ip())),
            Err(_) => true,
        };
        CopiedThread {
            tid: self.tid,
            name: self.name,
            state: self.state,
            kernel: if same { self.kernel } else { Vec::new() },
            stack,
            script: self.script,
        }
    }
}

/// The known registers of a thread that waits in the kernel. A system call has its arguments in them.
fn registers_of(at: WaitingAt) -> Registers {
    let mut registers = Registers::new(at.pc, at.sp);
    let arguments = Native::ARGUMENTS.into_iter().zip(at.arguments.into_iter().flatten());
    arguments.for_each(|(register, value)| registers.set(register, value));
    registers
}

/// Memory from `start` to the end of its mapping, at most `most` bytes.
fn piece(pid: u32, maps: &[u8], start: u64, most: u64) -> Option<(u64, Vec<u8>)> {
    let mapping = parse_maps(maps).find(|line| (line.start..line.end).contains(&start))?;
    let mut bytes = vec![0; usize::try_from((mapping.end - start).min(most)).ok()?];
    let read = read_memory(pid, start, &mut bytes);
    bytes.truncate(read);
    (read > 0).then_some((start, bytes))
}

/// The readable code around a program counter.
fn code_around(pid: u32, ip: u64) -> (u64, Vec<u8>) {
    let mut bytes = vec![0; 2 * CODE as usize];
    let starts = [ip.saturating_sub(CODE), ip];
    for start in starts {
        let read = read_memory(pid, start, &mut bytes);
        if start.saturating_add(read as u64) > ip {
            bytes.truncate(read);
            return (start, bytes);
        }
    }
    (ip, Vec::new())
}

/// Kernel threads have no memory of their own, and so no mappings.
fn is_kernel_thread(pid: u32) -> bool {
    plumb_process::mappings(pid).is_some_and(|maps| maps.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_around_a_place_is_what_is_there() {
        let known: [u8; 48] = std::array::from_fn(|index| index as u8);
        let at = known.as_ptr() as u64 + CODE;
        let own = std::process::id();
        assert_eq!(code_around(own, at), (at - CODE, known[..2 * CODE as usize].to_vec()));
        assert_eq!(code_around(own, 8), (8, Vec::new()), "nothing is mapped there");
        let registers = Registers::new(at, 0);
        let code = code_around(own, at);
        let mut stack =
            StackCopy { registers, in_system_call: false, places: Vec::new(), code, missed: None };
        let mut read = |at: u64, count: usize| {
            let mut bytes = vec![0; count];
            stack.read_code(Avma(at), &mut bytes).then_some(bytes)
        };
        assert_eq!(read(at, 8), Some((CODE as u8..CODE as u8 + 8).collect()));
        assert_eq!(read(at - 1, 1), Some(vec![CODE as u8 - 1]));
        assert_eq!((read(at, 17), read(at - 17, 1)), (None, None), "beyond what was copied");
        assert_eq!(stack.missed(), None, "no reason to copy more of the stack");
    }

    #[test]
    fn only_return_addresses_that_lead_to_a_probe_are_restored() {
        let probed = 0x7fff_ffff_e000_u64;
        let words = [probed, 7, probed, probed];
        let bytes = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let registers = Registers::new(0, 0x1000);
        let code = (0, Vec::new());
        let places = vec![(0x1000, bytes)];
        let mut stack = StackCopy { registers, in_system_call: false, places, code, missed: None };
        stack.restore_returns(&[(0x1000, 1), (0x1008, 2), (0x1010, 3), (0x101c, 4), (8, 5), (u64::MAX, 6)]);
        let read = [0, 8, 16, 24].map(|at| stack.read_u64(Avma(0x1000 + at)).expect("it is copied"));
        assert_eq!(read, [1, 7, 3, probed]);
    }
}
