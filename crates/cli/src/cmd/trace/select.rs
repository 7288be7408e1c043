//! The selection of calls by `-e`, as numbers, with the signature of each.

use std::io;

use anyhow::{Result, bail};
use plumb_capture_bpf::Want;
use plumb_capture_perf::Tracefs;
use plumb_syscalls::{Abi, Signature, in_group, name, number, tracked};

/// Number of call numbers; the last one represents all above.
const NUMBERS: u32 = 512;

/// Most tracepoints for single calls; for more calls, the tracepoint of all calls is used.
const MOST_EVENTS: usize = 32;

/// The selected calls, and the signatures of all.
pub(super) struct Selection {
    /// By number: the call's signature, and whether it is selected.
    calls: Vec<(Signature, bool)>,
    /// Selected names, for calls of 32-bit programs; `None`: all.
    names: Option<Vec<String>>,
    /// Calls that are not selected are recorded for their effect on descriptors.
    tracks: bool,
    /// The reason why arguments are unknown.
    pub unknown: Option<String>,
}

impl Selection {
    /// Parses the words of `-e`. `bytes`: number of buffer bytes to show. `plainly`: arguments are not shown at all.
    pub fn parse(words: &[String], bytes: u16, plainly: bool) -> Result<Self> {
        let (tracefs, unknown) = match Tracefs::open() {
            Ok(tracefs) => (Some(tracefs), None),
            Err(error) => (None, Some(format!("arguments are shown as numbers: {error}"))),
        };
        let describe =
            |number: u32| plumb_call_watch::described(tracefs.as_ref()?, name(Abi::NATIVE, number)?, bytes);
        let is_excluding = words.first().is_some_and(|word| word.starts_with('!'));
        let words: Vec<&str> = words.iter().map(|word| word.trim_start_matches('!')).collect();
        for word in &words {
            let is_call = [Abi::NATIVE, Abi::COMPAT].iter().any(|&abi| number(abi, word).is_some());
            match word.strip_prefix('%') {
                Some(group) if in_group(group, "", &Signature::default()).is_none() => {
                    bail!(
                        "there is no group {word} of calls; there are: %file, %desc, %net, %memory, %process, %signal, %ipc"
                    )
                }
                None if !is_call => bail!("there is no system call {word}"),
                _ => {}
            }
        }
        let is_asked = |name: &str, signature: &Signature| {
            let is_named = words.iter().any(|word| match word.strip_prefix('%') {
                Some(group) => in_group(group, name, signature) == Some(true),
                None => *word == name,
            });
            words.is_empty() || is_named != is_excluding
        };
        let mut calls = Vec::new();
        for number in 0..NUMBERS {
            let signature = describe(number).unwrap_or_default();
            let is_asked = is_asked(name(Abi::NATIVE, number).unwrap_or(""), &signature);
            calls.push((signature, is_asked));
        }
        let tracks =
            !plainly && calls.iter().any(|(signature, is_asked)| *is_asked && signature.has_descriptor());
        let names =
            (!words.is_empty() && !is_excluding).then(|| words.iter().map(|&word| word.to_owned()).collect());
        Ok(Self { calls, names, tracks, unknown })
    }

    /// The entry tracepoints of the selected calls, as `plumb record -e` names them.
    pub fn tracepoints(&self) -> Vec<String> {
        let asked =
            (0..).zip(&self.calls).filter(|(_, (signature, is_asked))| *is_asked && !signature.is_unknown());
        let names = asked.filter_map(|(number, _)| name(Abi::NATIVE, number));
        let events: Vec<String> =
            names.map(|name| format!("syscalls:sys_enter_{}", Signature::described_as(name))).collect();
        // Each tracepoint needs a file descriptor per CPU.
        if events.len() > MOST_EVENTS { vec!["raw_syscalls:sys_enter".to_owned()] } else { events }
    }

    /// The signature of a call.
    pub fn signature(&self, abi: Abi, number: u32) -> &Signature {
        static NONE: Signature = Signature::unknown();
        let known = self.calls.get(number as usize).filter(|_| abi == Abi::NATIVE);
        known.map_or(&NONE, |(signature, _)| signature)
    }

    /// Passes on the recording options of each call. `plainly`: copy no memory.
    pub fn each(&self, plainly: bool, mut tell: impl FnMut(Abi, u32, &Want) -> io::Result<()>) -> Result<()> {
        let tracked: Vec<u32> = tracked().filter_map(|name| number(Abi::NATIVE, name)).collect();
        for (number, (signature, show)) in (0..).zip(&self.calls) {
            let track = self.tracks && tracked.contains(&number);
            let takes = if plainly { Vec::new() } else { signature.takes().to_vec() };
            tell(Abi::NATIVE, number, &Want { show: *show, track, takes })?;
        }
        for number in 0..NUMBERS {
            let name = name(Abi::COMPAT, number).unwrap_or("");
            let show = self.names.as_ref().is_none_or(|names| names.iter().any(|known| known == name));
            tell(Abi::COMPAT, number, &Want { show, ..Want::default() })?;
        }
        Ok(())
    }
}
