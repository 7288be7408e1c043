//! Decodes the programs' messages from the bytes of the ring.

use plumb_capture_api::{
    CodeId, EvalLoopFrame, FrameWord, Message, Messages, Script, ScriptPlace, TimeOff, WalkedSample,
};

use plumb_unwind::{Architecture, Native};

use crate::wire::{
    self, Head, NO_CALL, Received, SAMPLE_IN_KERNEL, SAMPLE_NO_USER, SAMPLE_SCRIPT_CUT, SAMPLE_SCRIPT_ONLY,
    SAMPLE_STACK_ONLY, SCRIPT_ENTRY, SCRIPT_GENERATOR, SCRIPT_ROUND, UNTIL_EXEC,
};

// The programs mark frames with the bits that `FrameWord` reads.
const _: () = assert!(
    wire::FRAME_NO_RETURN == FrameWord::NO_RETURN
        && wire::FRAME_LOOP == FrameWord::LOOP
        && wire::FRAME_SCANNED == FrameWord::SCANNED
        && wire::FRAME_ASSUMED == FrameWord::ASSUMED
);

/// Adds a message to the others. Returns `None` if it is malformed.
pub(crate) fn read(mut bytes: &[u8], messages: &mut Messages) -> Option<()> {
    let message = match Received::take(&mut bytes)? {
        Received::Sample(sample) => return read_sample(&sample, bytes, messages),
        Received::TimeOff(wire::TimeOff { head, key, out_ns, blocked_ns, waited_ns }) => {
            let time = TimeOff { out_ns, blocked_ns, waited_ns, pid: head.pid, tid: head.tid, key };
            Message::Off { time_ns: head.time_ns, time }
        }
        Received::Want(wire::Want { head: Head { time_ns, pid, .. }, address, file, .. }) => {
            Message::Want { time_ns, pid, address, file }
        }
        Received::HandedOver(wire::HandedOver { head: Head { time_ns, tid, .. }, call, .. }) => {
            Message::InCall { time_ns, tid, syscall: Some(call).filter(|&call| call != NO_CALL) }
        }
        Received::Registers(wire::Registers {
            head: Head { time_ns, pid, tid, .. },
            ip,
            values,
            event,
            ..
        }) => {
            let is_known = |number: usize| number < usize::from(Native::PC);
            // The programs leave the others as they were in the ring.
            let values = std::array::from_fn(|number| if is_known(number) { values[number] } else { 0 });
            Message::Registers { time_ns, pid, tid, event: event as usize, ip, values: Box::new(values) }
        }
        Received::Spent(wire::Spent { head: Head { time_ns, pid, tid, .. }, runtime_ns, until, .. }) => {
            Message::Spent { time_ns, pid, tid, runtime_ns, at_exec: until == UNTIL_EXEC }
        }
        Received::InCgroup(wire::InCgroup { head: Head { time_ns, pid, .. }, bytes: count, .. }) => {
            let names = bytes.get(..usize::try_from(count).ok()?)?;
            Message::InCgroup { time_ns, pid, path: path(names) }
        }
        Received::Code(code) => {
            let mut memory = vec![
                part(code.at, code.code_bytes, &code.code)?,
                part(code.name_at, code.name_bytes, &code.name)?,
                part(code.file_at, code.file_bytes, &code.file)?,
                part(code.lines_at, code.lines_bytes, &code.lines)?,
            ];
            let links = code.links.get(..usize::try_from(code.link_words).ok()?)?.as_chunks::<2>().0;
            memory.extend(links.iter().map(|&[at, word]| (at, word.to_le_bytes().to_vec())));
            let wire::Code { head: Head { time_ns, pid, .. }, at, identity, .. } = code;
            Message::Code { time_ns, pid, code: CodeId { at, identity }, memory }
        }
    };
    messages.list.push(message);
    Some(())
}

/// The copied bytes of a part of code, with their address.
fn part(at: u64, count: u32, bytes: &[u8]) -> Option<(u64, Vec<u8>)> {
    Some((at, bytes.get(..usize::try_from(count).ok()?)?.to_vec()))
}

/// The path of a control group from its names, innermost first, each terminated by a zero. The root has none.
fn path(names: &[u8]) -> String {
    let names = names.split(|&byte| byte == 0).filter(|name| !name.is_empty() && *name != b"/");
    let names: Vec<_> = names.map(String::from_utf8_lossy).collect();
    names.iter().rev().fold(String::new(), |path, name| path + "/" + name)
}

/// Adds a sample, whose frames follow it in `rest`.
fn read_sample(sample: &wire::Sample, rest: &[u8], messages: &mut Messages) -> Option<()> {
    let &wire::Sample { head, flags, user, kernel, script, call, .. } = sample;
    let words = usize::try_from(u64::from(user) + u64::from(kernel)).ok()?;
    let script_words = 2 * usize::try_from(script).ok()?;
    let all = rest.get(..8 * (words + script_words))?.as_chunks::<8>().0;
    let (frames, script) = all.split_at_checked(words)?;
    if flags & SAMPLE_SCRIPT_ONLY != 0 {
        let is_cut = flags & SAMPLE_SCRIPT_CUT != 0;
        let script = Script { time_ns: head.time_ns, rounds: rounds(script), is_cut };
        messages.list.push(Message::Script { tid: head.tid, script });
        return Some(());
    }
    let begin = messages.frames.len();
    messages.frames.extend(frames.iter().map(|word| FrameWord::new(u64::from_ne_bytes(*word))));
    let script_begin = messages.script.len();
    messages.script.extend(script.as_chunks::<2>().0.iter().map(|pair| place(*pair)));
    messages.list.push(Message::Sample(WalkedSample {
        time_ns: head.time_ns,
        cpu: head.cpu,
        pid: head.pid,
        tid: head.tid,
        event: usize::try_from(sample.event).ok()?,
        syscall: (call != NO_CALL).then_some(call),
        period: sample.period,
        key: sample.key,
        is_stack_only: flags & SAMPLE_STACK_ONLY != 0,
        in_kernel: flags & SAMPLE_IN_KERNEL != 0,
        has_user: flags & SAMPLE_NO_USER == 0,
        user: begin..begin + user as usize,
        kernel: begin + user as usize..begin + words,
        script: script_begin..messages.script.len(),
        script_is_cut: flags & SAMPLE_SCRIPT_CUT != 0,
    }));
    Some(())
}

/// Eval frames with their script frames.
fn rounds(script: &[[u8; 8]]) -> Vec<EvalLoopFrame> {
    let mut rounds: Vec<EvalLoopFrame> = Vec::new();
    // Script frames whose native frame is not known yet.
    let mut frames: Vec<ScriptPlace> = Vec::new();
    for pair in script.as_chunks::<2>().0 {
        let [at, is_end] = pair.map(u64::from_ne_bytes);
        if at & SCRIPT_ROUND != 0 {
            let frames = if is_end == 1 { std::mem::take(&mut frames) } else { Vec::new() };
            rounds.push(EvalLoopFrame { at: Some(at & !SCRIPT_ROUND), frames });
        } else if let Some(round) = rounds.last_mut().filter(|round| !is_whole(round)) {
            round.frames.push(place(*pair));
        } else {
            frames.push(place(*pair));
        }
    }
    let rest = frames.split_inclusive(|place| place.is_entry);
    rounds.extend(rest.map(|frames| EvalLoopFrame { at: None, frames: frames.to_vec() }));
    rounds
}

/// Whether an eval frame has all of its script frames.
fn is_whole(round: &EvalLoopFrame) -> bool {
    round.frames.last().is_some_and(|last| last.is_entry)
}

/// Decodes a script frame from two words.
fn place(words: [[u8; 8]; 2]) -> ScriptPlace {
    let [code, rest] = words.map(u64::from_ne_bytes);
    ScriptPlace {
        code: CodeId { at: code & !(SCRIPT_ENTRY | SCRIPT_GENERATOR), identity: (rest >> 32) as u32 },
        offset: rest as u32,
        is_entry: code & SCRIPT_ENTRY != 0,
        is_generator: code & SCRIPT_GENERATOR != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_have_their_frames_in_each_form() {
        let words = |words: &[u64]| words.iter().map(|word| word.to_ne_bytes()).collect::<Vec<_>>();
        let codes = |words: &[[u8; 8]]| -> Vec<(Option<u64>, Vec<u64>)> {
            let of =
                |round: EvalLoopFrame| (round.at, round.frames.iter().map(|frame| frame.code.at).collect());
            rounds(words).into_iter().map(of).collect()
        };
        let (entry, round) = (SCRIPT_ENTRY, SCRIPT_ROUND);
        let before = words(&[0x100 | round, 0, 0x10, 0, 0x20 | entry, 0, 0x200 | round, 0, 0x30, 0]);
        assert_eq!(codes(&before), [(Some(0x100), vec![0x10, 0x20]), (Some(0x200), vec![0x30])]);
        let after = words(&[0x10, 0, 0x20 | entry, 0, 0x100 | round, 1, 0x30, 0]);
        assert_eq!(codes(&after), [(Some(0x100), vec![0x10, 0x20]), (None, vec![0x30])]);
        let single = words(&[0x10 | entry, 0, 0x20 | entry, 0]);
        assert_eq!(codes(&single), [(None, vec![0x10]), (None, vec![0x20])]);
    }

    #[test]
    fn the_path_of_a_group_is_of_its_names() {
        assert_eq!(path(b"b.scope\0a.slice\0\0"), "/a.slice/b.scope");
        assert_eq!(path(b"/\0"), "");
        let mut bytes = Vec::new();
        bytes.extend([wire::MESSAGE_IN_CGROUP, 0, 9, 0, 7, 7, 2, 0].map(u32::to_ne_bytes).concat());
        let mut messages = Messages::default();
        assert_eq!(read(&[&bytes[..], b"a"].concat(), &mut messages), None);
        assert_eq!(read(&[&bytes[..], b"a\0"].concat(), &mut messages), Some(()));
        assert_eq!(messages.list, [Message::InCgroup { time_ns: 9, pid: 7, path: "/a".to_owned() }]);
    }

    #[test]
    fn damaged_messages_are_refused() {
        let mut bytes = Vec::new();
        bytes.extend(wire::MESSAGE_SAMPLE.to_ne_bytes());
        bytes.extend([0; 36]);
        bytes.extend([2_u32, 1, SAMPLE_IN_KERNEL, 1].iter().flat_map(|word| word.to_ne_bytes()));
        bytes.extend(
            [5_u64 | 39 << 32, 10, 20, 30, 0x1000 | SCRIPT_ENTRY, 7 << 32 | 184]
                .iter()
                .flat_map(|word| word.to_ne_bytes()),
        );
        let mut messages = Messages::default();
        for length in 0..bytes.len() {
            assert_eq!(read(&bytes[..length], &mut messages), None);
        }
        assert_eq!(read(&bytes, &mut messages), Some(()));
        let [Message::Sample(sample)] = &messages.list[..] else { panic!("a sample was sent") };
        assert_eq!(messages.frames[sample.user.clone()], [10, 20].map(FrameWord::new));
        assert_eq!(messages.frames[sample.kernel.clone()], [FrameWord::new(30)]);
        let place = ScriptPlace {
            code: CodeId { at: 0x1000, identity: 7 },
            offset: 184,
            is_entry: true,
            is_generator: false,
        };
        assert_eq!(messages.script[sample.script.clone()], [place]);
        assert_eq!((sample.event, sample.syscall), (5, Some(39)));
        assert!(sample.in_kernel && sample.has_user && !sample.script_is_cut);
    }
}
