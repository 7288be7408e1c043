//! Messages of the in-kernel stack unwinder: samples, counts, requests for unwind information.

use std::ops::Range;

use plumb_interpreters::{CodeId, EvalLoopFrame, ScriptPlace};

use crate::{FrameWord, TimeOff};

/// Largest distance in time between a sample's record and the messages that belong to it, in nanoseconds.
pub const NEAR_NS: u64 = 150_000;
/// Number of frames of delivered messages that may stay in memory.
const KEPT_FRAMES: usize = 1 << 16;
/// Key under which off-CPU time without a stack is counted, with the one before it.
pub const WITHOUT_STACK: u64 = 1;

/// Messages of an unwinder.
#[derive(Debug, Default)]
pub struct Messages {
    /// The messages, approximately sorted by time.
    pub list: Vec<Message>,
    /// The frames of all samples.
    pub frames: Vec<FrameWord>,
    /// The script frames of all samples.
    pub script: Vec<ScriptPlace>,
}

impl Messages {
    /// Drops the frames of samples that were delivered. On a busy machine there is always a message newer than the
    /// records read so far, so this must not wait until there is none.
    pub fn forget_frames(&mut self) {
        let Self { list, frames, script } = self;
        if !list.is_empty() && frames.len() <= KEPT_FRAMES && script.len() <= KEPT_FRAMES {
            return;
        }
        let samples = || list.iter().filter_map(Message::sample);
        let starts = |ranges: &mut dyn Iterator<Item = &Range<usize>>| {
            ranges.filter(|range| !range.is_empty()).map(|range| range.start).min()
        };
        let first = starts(&mut samples().flat_map(|sample| [&sample.user, &sample.kernel]));
        let first_script = starts(&mut samples().map(|sample| &sample.script));
        let gone = first.unwrap_or(frames.len()).min(frames.len());
        let gone_script = first_script.unwrap_or(script.len()).min(script.len());
        frames.drain(..gone);
        script.drain(..gone_script);
        let moved = |range: &Range<usize>, by: usize| match range.is_empty() {
            true => 0..0,
            false => range.start - by..range.end - by,
        };
        for message in list.iter_mut() {
            let Message::Sample(sample) = message else { continue };
            sample.user = moved(&sample.user, gone);
            sample.kernel = moved(&sample.kernel, gone);
            sample.script = moved(&sample.script, gone_script);
        }
        // The lists were long if nobody read them for a while.
        list.shrink_to(2 * list.len() + KEPT_FRAMES / 16);
        frames.shrink_to(2 * frames.len() + KEPT_FRAMES);
        script.shrink_to(2 * script.len() + KEPT_FRAMES);
    }
}

/// A message of an unwinder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A sample with its stack.
    Sample(WalkedSample),
    /// A request for a file's unwind information.
    Want {
        /// Time of the request.
        time_ns: u64,
        /// The process that has the file mapped.
        pid: u32,
        /// An address in the file.
        address: u64,
        /// The unwinder's number for the file.
        file: u32,
    },
    /// Memory that holds the names of an interpreted program's code, as it was when the code was first seen.
    Code {
        /// Time of the observation.
        time_ns: u64,
        /// The process.
        pid: u32,
        /// The code.
        code: CodeId,
        /// Pieces of memory with their addresses.
        memory: Vec<(u64, Vec<u8>)>,
    },
    /// The script frames of a sample that was passed on to the recorder: its record comes next.
    Script {
        /// Thread id.
        tid: u32,
        /// The frames.
        script: Script,
    },
    /// A thread's off-CPU period.
    Off {
        /// Time of its return to the CPU.
        time_ns: u64,
        /// The period.
        time: TimeOff,
    },
    /// A sample taken in the kernel, whose record follows.
    InCall {
        /// Time of the sample.
        time_ns: u64,
        /// Thread id.
        tid: u32,
        /// Number of the system call that it interrupted.
        syscall: Option<u32>,
    },
    /// The user registers of a sample.
    Registers {
        /// Time of the sample.
        time_ns: u64,
        /// Process id.
        pid: u32,
        /// Thread id.
        tid: u32,
        /// Number of the event, as in [`WalkedSample::event`].
        event: usize,
        /// The instruction pointer.
        ip: u64,
        /// Register values by DWARF number; 0 beyond those that the architecture has.
        values: Box<[u64; 32]>,
    },
    /// The CPU time of a thread since it was forked.
    Spent {
        /// Time of the message.
        time_ns: u64,
        /// Process id.
        pid: u32,
        /// Thread id. If a thread other than the first of its process execs, the two swap ids from then on.
        tid: u32,
        /// CPU time as accounted by the scheduler, in nanoseconds.
        runtime_ns: u64,
        /// Whether the thread has just exec'd; otherwise it has exited.
        at_exec: bool,
    },
    /// The control group in which a process exited.
    InCgroup {
        /// Time of the exit.
        time_ns: u64,
        /// Process id.
        pid: u32,
        /// The group's path, below the root of its hierarchy.
        path: String,
    },
}

impl Message {
    fn sample(&self) -> Option<&WalkedSample> {
        match self {
            Message::Sample(sample) => Some(sample),
            _ => None,
        }
    }

    /// Returns the time at which to deliver it.
    pub fn time_ns(&self) -> u64 {
        match self {
            Message::Sample(sample) => sample.time_ns,
            // The message may belong to a sample whose record has an earlier time.
            Message::Code { time_ns, .. } => time_ns.saturating_sub(NEAR_NS),
            Message::Script { script, .. } => script.time_ns,
            Message::Want { time_ns, .. }
            | Message::Off { time_ns, .. }
            | Message::InCall { time_ns, .. }
            | Message::Registers { time_ns, .. }
            | Message::Spent { time_ns, .. }
            | Message::InCgroup { time_ns, .. } => *time_ns,
        }
    }
}

/// A sample with a complete stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalkedSample {
    /// Time on the monotonic clock.
    pub time_ns: u64,
    /// Number of the CPU.
    pub cpu: u32,
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Number of the sampled event, with which its program was attached.
    pub event: usize,
    /// Number of the system call that it interrupted in the kernel.
    pub syscall: Option<u32>,
    /// Weight of the sample in the event's unit.
    pub period: u64,
    /// Key under which further equal stacks of the thread are counted; 0: they are not. For off-CPU time
    /// this is an even number, for blocked time; the next one is for run-queue wait.
    pub key: u64,
    /// `true` for a stack to which off-CPU times refer, which is not a sample itself.
    pub is_stack_only: bool,
    /// Whether the sample was taken in the kernel.
    pub in_kernel: bool,
    /// Whether the thread has user code.
    pub has_user: bool,
    /// User frames, innermost first, in [`Messages::frames`].
    pub user: Range<usize>,
    /// Kernel frames, innermost first, without marks: all but the first are return addresses.
    pub kernel: Range<usize>,
    /// Script frames, innermost first, in [`Messages::script`].
    pub script: Range<usize>,
    /// Whether there were more script frames than could be sent.
    pub script_is_cut: bool,
}

/// Script frames of a sample whose native frames are not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// Time of the sample.
    pub time_ns: u64,
    /// Evaluation loop frames, innermost first.
    pub rounds: Vec<EvalLoopFrame>,
    /// Whether there were more than could be sent.
    pub is_cut: bool,
}

/// The frames of a sample.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// User frames, innermost first.
    pub user: &'a [FrameWord],
    /// Kernel frames, innermost first.
    pub kernel: &'a [FrameWord],
    /// Script frames, innermost first.
    pub script: &'a [ScriptPlace],
}

/// Further samples of a stack that was sent before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Key of the stack, see [`WalkedSample::key`].
    pub key: u64,
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Number of samples since the last count.
    pub samples: u64,
    /// Sum of their weights.
    pub period: u64,
    /// Time of the last of them.
    pub time_ns: u64,
}

impl Counted {
    /// Adds a later count of the same stack.
    pub fn add(&mut self, later: Counted) {
        let (samples, period) = (self.samples + later.samples, self.period.saturating_add(later.period));
        *self = Self { samples, period, ..later };
    }

    /// Converts the count to an off-CPU period.
    pub fn times(&self) -> TimeOff {
        let &Self { key, pid, tid, period, time_ns: out_ns, .. } = self;
        let (blocked_ns, waited_ns) = if key == WITHOUT_STACK { (0, period) } else { (period, 0) };
        TimeOff { out_ns, blocked_ns, waited_ns, pid, tid, key: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(messages: &mut Messages, number: u64) {
        let begin = messages.frames.len();
        messages.frames.extend([FrameWord::new(number); 20]);
        let script_begin = messages.script.len();
        messages.list.push(Message::Sample(WalkedSample {
            time_ns: number,
            cpu: 0,
            pid: 1,
            tid: 1,
            event: 0,
            syscall: None,
            period: 1,
            key: 0,
            is_stack_only: false,
            in_kernel: false,
            has_user: true,
            user: begin..begin + 12,
            kernel: begin + 12..begin + 20,
            script: script_begin..script_begin,
            script_is_cut: false,
        }));
    }

    #[test]
    fn frames_go_with_their_samples_though_some_always_wait() {
        let mut messages = Messages::default();
        let mut most = 0;
        for number in 0..200_000 {
            sample(&mut messages, number);
            if number % 100 == 99 {
                // All but the newest three are delivered.
                let handed_out = messages.list.len() - 3;
                messages.list.drain(..handed_out);
                messages.forget_frames();
                most = most.max(messages.frames.capacity());
                for message in &messages.list {
                    let of = message.sample().expect("there are no others");
                    let frames =
                        [&messages.frames[of.user.clone()], &messages.frames[of.kernel.clone()]].concat();
                    assert_eq!(frames, [FrameWord::new(of.time_ns); 20], "each has its own");
                }
            }
        }
        assert!(most < 4 * KEPT_FRAMES, "room for {most} frames");
    }
}
