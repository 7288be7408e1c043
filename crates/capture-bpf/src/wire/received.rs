//! Messages from the bytes of a ring. Made of src/wire/: `cargo run -p xtask -- codegen`.
//!
//! Not here: what they mean.

use super::{
    Code, HandedOver, Head, InCgroup, MESSAGE_CODE, MESSAGE_HANDED_OVER, MESSAGE_IN_CGROUP,
    MESSAGE_REGISTERS, MESSAGE_SAMPLE, MESSAGE_SPENT, MESSAGE_TIME_OFF, MESSAGE_WANT, Registers, Sample,
    Spent, TimeOff, Want,
};

/// A message.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::large_enum_variant, reason = "read at once, kept nowhere")]
pub enum Received {
    /// [`Sample`].
    Sample(Sample),
    /// [`Want`].
    Want(Want),
    /// [`Spent`].
    Spent(Spent),
    /// [`Code`].
    Code(Code),
    /// [`TimeOff`].
    TimeOff(TimeOff),
    /// [`HandedOver`].
    HandedOver(HandedOver),
    /// [`Registers`].
    Registers(Registers),
    /// [`InCgroup`].
    InCgroup(InCgroup),
}

impl Received {
    /// Reads a message off the front of `bytes`, which are left with what follows it. `None`: it is of no kind that is known, or cut off.
    pub fn take(bytes: &mut &[u8]) -> Option<Self> {
        let head = Head::take(&mut &**bytes)?;
        Some(match head.kind {
            MESSAGE_SAMPLE => Self::Sample(Sample::take(bytes)?),
            MESSAGE_WANT => Self::Want(Want::take(bytes)?),
            MESSAGE_SPENT => Self::Spent(Spent::take(bytes)?),
            MESSAGE_CODE => Self::Code(Code::take(bytes)?),
            MESSAGE_TIME_OFF => Self::TimeOff(TimeOff::take(bytes)?),
            MESSAGE_HANDED_OVER => Self::HandedOver(HandedOver::take(bytes)?),
            MESSAGE_REGISTERS => Self::Registers(Registers::take(bytes)?),
            MESSAGE_IN_CGROUP => Self::InCgroup(InCgroup::take(bytes)?),
            _ => return None,
        })
    }
}

impl Head {
    /// Takes one off the front of `bytes`.
    fn take(bytes: &mut &[u8]) -> Option<Self> {
        Some(Self {
            kind: u32::from_ne_bytes(array(bytes)?),
            cpu: u32::from_ne_bytes(array(bytes)?),
            time_ns: u64::from_ne_bytes(array(bytes)?),
            pid: u32::from_ne_bytes(array(bytes)?),
            tid: u32::from_ne_bytes(array(bytes)?),
        })
    }
}

impl Sample {
    /// Takes one off the front of `bytes`.
    fn take(bytes: &mut &[u8]) -> Option<Self> {
        Some(Self {
            head: Head::take(bytes)?,
            period: u64::from_ne_bytes(array(bytes)?),
            key: u64::from_ne_bytes(array(bytes)?),
            user: u32::from_ne_bytes(array(bytes)?),
            kernel: u32::from_ne_bytes(array(bytes)?),
            flags: u32::from_ne_bytes(array(bytes)?),
            script: u32::from_ne_bytes(array(bytes)?),
            event: u32::from_ne_bytes(array(bytes)?),
            call: u32::from_ne_bytes(array(bytes)?),
        })
    }
}

impl Want {
    /// Takes one off the front of `bytes`.
    fn take(bytes: &mut &[u8]) -> Option<Self> {
        Some(Self {
            head: Head::take(bytes)?,
            address: u64::from_ne_bytes(array(bytes)?),
            file: u32::from_ne_bytes(array(bytes)?),
            zero: u32::from_ne_bytes(array(bytes)?),
        })
    }
}

impl Code {
    /// Takes one off the front of `bytes`.
    fn take(bytes: &mut &[u8]) -> Option<Self> {
        Some(Self {
            head: Head::take(bytes)?,
            at: u64::from_ne_bytes(array(bytes)?),
            name_at: u64::from_ne_bytes(array(bytes)?),
            file_at: u64::from_ne_bytes(array(bytes)?),
            lines_at: u64::from_ne_bytes(array(bytes)?),
            identity: u32::from_ne_bytes(array(bytes)?),
            code_bytes: u32::from_ne_bytes(array(bytes)?),
            name_bytes: u32::from_ne_bytes(array(bytes)?),
            file_bytes: u32::from_ne_bytes(array(bytes)?),
            lines_bytes: u32::from_ne_bytes(array(bytes)?),
            link_words: u32::from_ne_bytes(array(bytes)?),
            links: words(bytes)?,
            code: array(bytes)?,
            name: array(bytes)?,
            file: array(bytes)?,
            lines: array(bytes)?,
        })
    }
}

impl Spent {
    /// Takes one off the front of `bytes`.
    fn take(bytes: &mut &[u8]) -> Option<Self> {
        Some(Self {
            head: Head::take(bytes)?,
            runtime_ns: u64::from_ne_bytes(array(bytes)?),
            until: u32::from_ne_bytes(array(bytes)?),
            zero: u32::from_ne_bytes(array(bytes)?),
        })
    }
}

impl InCgroup {
    /// Takes one off the front of `bytes`.
    fn take(bytes: &mut &[u8]) -> Option<Self> {
        Some(Self {
            head: Head::take(bytes)?,
            bytes: u32::from_ne_bytes(array(bytes)?),
            zero: u32::from_ne_bytes(array(bytes)?),
        })
    }
}

impl HandedOver {
    /// Takes one off the front of `bytes`.
    fn take(bytes: &mut &[u8]) -> Option<Self> {
        Some(Self {
            head: Head::take(bytes)?,
            call: u32::from_ne_bytes(array(bytes)?),
            zero: u32::from_ne_bytes(array(bytes)?),
        })
    }
}

impl Registers {
    /// Takes one off the front of `bytes`.
    fn take(bytes: &mut &[u8]) -> Option<Self> {
        Some(Self {
            head: Head::take(bytes)?,
            ip: u64::from_ne_bytes(array(bytes)?),
            values: words(bytes)?,
            event: u32::from_ne_bytes(array(bytes)?),
            zero: u32::from_ne_bytes(array(bytes)?),
        })
    }
}

impl TimeOff {
    /// Takes one off the front of `bytes`.
    fn take(bytes: &mut &[u8]) -> Option<Self> {
        Some(Self {
            head: Head::take(bytes)?,
            key: u64::from_ne_bytes(array(bytes)?),
            out_ns: u64::from_ne_bytes(array(bytes)?),
            blocked_ns: u64::from_ne_bytes(array(bytes)?),
            waited_ns: u64::from_ne_bytes(array(bytes)?),
        })
    }
}

/// Takes as many bytes as an array has.
fn array<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (array, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*array)
}

/// Takes as many numbers as an array has.
fn words<const N: usize>(bytes: &mut &[u8]) -> Option<[u64; N]> {
    let mut words = [0; N];
    for word in &mut words {
        *word = u64::from_ne_bytes(array(bytes)?);
    }
    Some(words)
}
