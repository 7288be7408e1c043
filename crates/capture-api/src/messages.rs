//! What a walker of stacks in the kernel says: samples, counts, wants.

use std::ops::Range;

use plumb_interpreters::{CodeId, EvalLoopFrame, ScriptPlace};

use crate::TimeOff;

/// What is said of a sample's record beforehand has a time that is no further from the record's, in nanoseconds.
pub const NEAR_NS: u64 = 150_000;
/// So many frames of messages may be there that were handed out.
const KEPT_FRAMES: usize = 1 << 16;
/// Time off the processor is counted by this key and the one before where there is no stack.
pub const WITHOUT_STACK: u64 = 1;

/// Messages of an assistant.
#[derive(Debug, Default)]
pub struct Messages {
    /// The messages, in about the order of their time.
    pub list: Vec<Message>,
    /// The frames of all samples.
    pub frames: Vec<u64>,
    /// The frames of interpreted programs of all samples.
    pub script: Vec<ScriptPlace>,
}

impl Messages {
    /// Forgets the frames of samples that are not there any more. On a busy machine there is always a message that is newer than the
    /// records that were read, so that this must not wait until there is none.
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
        // After a while in which nobody had time for them there were many.
        list.shrink_to(2 * list.len() + KEPT_FRAMES / 16);
        frames.shrink_to(2 * frames.len() + KEPT_FRAMES);
        script.shrink_to(2 * script.len() + KEPT_FRAMES);
    }
}

/// A message of an assistant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A sample, walked.
    Sample(WalkedSample),
    /// It wants a file's code.
    Want {
        /// When.
        time_ns: u64,
        /// The process that has the file mapped.
        pid: u32,
        /// An address in it.
        address: u64,
        /// What the assistant calls the file.
        file: u32,
    },
    /// Memory that says what code of an interpreted program is called, as it was when the code was seen first.
    Code {
        /// When.
        time_ns: u64,
        /// The process.
        pid: u32,
        /// The code.
        code: CodeId,
        /// Stretches of memory with their addresses.
        memory: Vec<(u64, Vec<u8>)>,
    },
    /// The frames of the interpreted program of a sample that was handed over: its record comes next.
    Script {
        /// The task.
        tid: u32,
        /// The frames.
        script: Script,
    },
    /// A thread was off the processor.
    Off {
        /// When it came back.
        time_ns: u64,
        /// The time.
        time: TimeOff,
    },
    /// A sample was taken in the kernel, and its record follows.
    InCall {
        /// When.
        time_ns: u64,
        /// The thread.
        tid: u32,
        /// Number of the system call that it interrupted.
        syscall: Option<u32>,
    },
    /// The user registers of a sample.
    Registers {
        /// When.
        time_ns: u64,
        /// The process.
        pid: u32,
        /// The thread.
        tid: u32,
        /// Number of the event, as in [`WalkedSample::event`].
        event: usize,
        /// The instruction that was about to run.
        ip: u64,
        /// By DWARF number.
        values: Box<[u64; 16]>,
    },
    /// How much processor time a task has used since it was forked.
    Spent {
        /// When.
        time_ns: u64,
        /// The process.
        pid: u32,
        /// The task. Where one execs that was not the first of its process, the two have each other's number from then on.
        tid: u32,
        /// The time, as the scheduler accounts it.
        runtime_ns: u64,
        /// It has just exec'd; otherwise it has ended.
        at_exec: bool,
    },
    /// The control group in which a process ended.
    InCgroup {
        /// When.
        time_ns: u64,
        /// The process.
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

    /// When it is to be handed out.
    pub fn time_ns(&self) -> u64 {
        match self {
            Message::Sample(sample) => sample.time_ns,
            // It may be of a sample whose record has a time before.
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

/// A sample whose stack is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalkedSample {
    /// When, by the monotonic clock.
    pub time_ns: u64,
    /// Processor.
    pub cpu: u32,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Which of the sampled events it is of, by the number that its program was attached with.
    pub event: usize,
    /// Number of the system call that it interrupted in the kernel.
    pub syscall: Option<u32>,
    /// What it counts.
    pub period: u64,
    /// Under which equal stacks of the thread are counted from now on; 0: they are not. Where time off the processor is measured
    /// this is an even number, for time blocked; the next one is for time waited.
    pub key: u64,
    /// It is no sample, but a stack that times off the processor are told by.
    pub is_stack_only: bool,
    /// It was taken in the kernel.
    pub in_kernel: bool,
    /// The task has a user part.
    pub has_user: bool,
    /// User frames, innermost first, in [`Messages::frames`]; bit 63 marks those that are no return addresses, bit 62 those that
    /// are a round of an interpreter's loop of which there are script frames.
    pub user: Range<usize>,
    /// Kernel frames likewise, without marks: the first is no return address.
    pub kernel: Range<usize>,
    /// Frames of the interpreted program, innermost first, in [`Messages::script`].
    pub script: Range<usize>,
    /// There were more than could be sent.
    pub script_is_cut: bool,
}

/// Frames of an interpreted program, where the native ones are not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// When.
    pub time_ns: u64,
    /// Rounds of the interpreter's loop, innermost first.
    pub rounds: Vec<EvalLoopFrame>,
    /// There were more than could be sent.
    pub is_cut: bool,
}

/// The frames of a walked sample.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// User frames, innermost first.
    pub user: &'a [u64],
    /// Kernel frames likewise.
    pub kernel: &'a [u64],
    /// Those of the interpreted program.
    pub script: &'a [ScriptPlace],
}

/// A stack that was sent before, and counted since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// [`WalkedSample::key`].
    pub key: u64,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Samples since.
    pub samples: u64,
    /// Sum of their periods.
    pub period: u64,
    /// When the last of them was.
    pub time_ns: u64,
}

impl Counted {
    /// Adds what was counted later of the same stack.
    pub fn add(&mut self, later: Counted) {
        let (samples, period) = (self.samples + later.samples, self.period.saturating_add(later.period));
        *self = Self { samples, period, ..later };
    }

    /// As times off the processor, whatever their stack.
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
        messages.frames.extend([number; 20]);
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
                // All are handed out but the newest three.
                let handed_out = messages.list.len() - 3;
                messages.list.drain(..handed_out);
                messages.forget_frames();
                most = most.max(messages.frames.capacity());
                for message in &messages.list {
                    let of = message.sample().expect("there are no others");
                    let frames =
                        [&messages.frames[of.user.clone()], &messages.frames[of.kernel.clone()]].concat();
                    assert_eq!(frames, [of.time_ns; 20], "each has its own");
                }
            }
        }
        assert!(most < 4 * KEPT_FRAMES, "room for {most} frames");
    }
}
