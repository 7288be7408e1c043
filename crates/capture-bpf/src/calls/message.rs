//! Decodes the messages of a system call.

use std::mem::offset_of;

use plumb_syscalls::{Abi, CallEnd, Outcome, Piece, SystemCall};

use super::wire::{
    self, CALL_COMPAT, CALL_LATE, CALL_SHOWN, CALL_THREAD_ENDED, CALL_UNFINISHED, PIECE_CUT, PIECE_HEAD,
};

/// Decodes a message; `None` if it is too short.
pub(super) fn read(bytes: &[u8]) -> Option<SystemCall<'_>> {
    let (head, rest) = bytes.split_at_checked(offset_of!(wire::Call, data))?;
    let flags = u32_at(head, offset_of!(wire::Call, flags))?;
    let has = |flag| flags & flag != 0;
    let mut args = [0; 6];
    for (index, arg) in args.iter_mut().enumerate() {
        *arg = u64_at(head, offset_of!(wire::Call, args) + 8 * index)?;
    }
    let comm = head.get(offset_of!(wire::Call, comm)..)?.get(..16)?;
    let result = u64_at(head, offset_of!(wire::Call, result))? as i64;
    let data = u32_at(head, offset_of!(wire::Call, bytes))? as usize;
    Some(SystemCall {
        begin_ns: u64_at(head, offset_of!(wire::Call, begin_ns))?,
        end_ns: u64_at(head, offset_of!(wire::Call, end_ns))?,
        pid: u32_at(head, offset_of!(wire::Call, pid))?,
        tid: u32_at(head, offset_of!(wire::Call, tid))?,
        comm: comm.split(|&byte| byte == 0).next().unwrap_or_default(),
        abi: if has(CALL_COMPAT) { Abi::COMPAT } else { Abi::NATIVE },
        number: u32_at(head, offset_of!(wire::Call, number))?,
        args,
        end: match () {
            () if has(CALL_THREAD_ENDED) => CallEnd::ThreadEnded,
            () if has(CALL_UNFINISHED) => CallEnd::Unfinished,
            () if has(CALL_COMPAT) => CallEnd::Returned(Outcome::of(i64::from(result as i32))),
            () => CallEnd::Returned(Outcome::of(result)),
        },
        is_late: has(CALL_LATE),
        is_shown: has(CALL_SHOWN),
        pieces: pieces(rest.get(..data).unwrap_or(rest)),
    })
}

fn pieces(mut rest: &[u8]) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    while let Some((head, after)) = rest.split_at_checked(PIECE_HEAD as usize) {
        let length = u32_at(head, offset_of!(wire::Piece, bytes)).unwrap_or(0) as usize;
        let Some((bytes, _)) = after.split_at_checked(length) else { break };
        let (take, state) = (usize::from(head[0]), head[1]);
        pieces.push(Piece { take, is_cut: state & PIECE_CUT != 0, bytes });
        rest = after.get(length.next_multiple_of(8)..).unwrap_or_default();
    }
    pieces
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|word| u64::from_ne_bytes(*word))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|word| u32::from_ne_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Vec<u8> {
        let mut bytes: Vec<u8> = [100_u64, 350, -2_i64 as u64, 11, 12, 13, 14, 15, 16]
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        bytes.extend([257_u32, CALL_SHOWN, 42, 43].iter().flat_map(|word| word.to_ne_bytes()));
        bytes.extend(b"name\0oldrest...x");
        bytes.extend([0_u32, 0, 40, 0].iter().flat_map(|word| word.to_ne_bytes()));
        for (take, text) in [(0_u8, b"/etc/pas"), (2, b"/x\0\0\0\0\0\0")] {
            bytes.extend([take, if take == 0 { 1 | PIECE_CUT } else { 1 }, 0, 0]);
            bytes.extend(if take == 0 { 8_u32 } else { 2 }.to_ne_bytes());
            bytes.extend(text);
        }
        bytes
    }

    #[test]
    fn a_call_is_read() {
        let bytes = message();
        let call = read(&bytes).expect("it is whole");
        assert_eq!((call.begin_ns, call.end_ns, call.pid, call.tid), (100, 350, 42, 43));
        assert_eq!((call.number, call.args[5], call.comm), (257, 16, &b"name"[..]));
        assert_eq!(call.end, CallEnd::Returned(Outcome::Error(2)));
        assert!(call.is_shown && !call.is_late);
        let first = Piece { take: 0, is_cut: true, bytes: b"/etc/pas" };
        assert_eq!(call.pieces, [first, Piece { take: 2, is_cut: false, bytes: b"/x" }]);
    }

    #[test]
    fn damaged_messages_do_no_harm() {
        let bytes = message();
        for length in 0..bytes.len() {
            let call = read(&bytes[..length]);
            assert_eq!(call.is_some(), length >= offset_of!(wire::Call, data));
        }
        for at in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] = 0xff;
            let _ = read(&bytes);
        }
    }
}
