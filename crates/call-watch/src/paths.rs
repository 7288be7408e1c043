//! The files that calls refer to: by path argument, or by descriptor.

use std::collections::HashMap;
use std::rc::Rc;

use plumb_capture_bpf::Want;
use plumb_capture_perf::Tracefs;
use plumb_syscalls::{Abi, Descriptors, Signature, SystemCall, What, number, tracked};

use crate::call_formats::described;
use crate::descriptor_links::DescriptorLinks;

/// Calls whose rules depend on the file of their descriptor.
const BY_DESCRIPTOR: [&str; 9] =
    ["read", "readv", "write", "writev", "pread64", "pwrite64", "getdents64", "getdents", "close"];

/// Signatures of system calls that rules examine, or that open, duplicate or close descriptors.
pub(crate) struct Known {
    /// By number.
    signatures: HashMap<u32, Signature>,
    looked_at: Vec<u32>,
}

impl Known {
    /// Looks up calls by name.
    pub fn of(names: impl Iterator<Item = &'static str>) -> Self {
        let numbers = |names: &mut dyn Iterator<Item = &'static str>| -> Vec<(u32, &str)> {
            names.filter_map(|name| Some((number(Abi::NATIVE, name)?, name))).collect()
        };
        let (looked_at, tracked) = (numbers(&mut { names }), numbers(&mut tracked()));
        // Without it paths are unknown, and rules on files don't apply.
        let tracefs = Tracefs::open().ok();
        let all = looked_at.iter().chain(&tracked);
        let signatures =
            all.filter_map(|&(number, name)| Some((number, described(tracefs.as_ref()?, name, 0)?)));
        let signatures = signatures.collect();
        Self { signatures, looked_at: looked_at.into_iter().map(|(number, _)| number).collect() }
    }

    /// The recording options of each call: memory is copied only for paths.
    pub fn wants(&self) -> impl Iterator<Item = (u32, Want)> {
        let tracked: Vec<u32> = tracked().filter_map(|name| number(Abi::NATIVE, name)).collect();
        let mut numbers: Vec<u32> = self.looked_at.iter().chain(&tracked).copied().collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.into_iter().map(move |number| {
            let track = tracked.contains(&number);
            let signature = self.signatures.get(&number).filter(|one| track || one.has_path());
            let takes = signature.map_or_else(Vec::new, |signature| signature.takes().to_vec());
            (number, Want { show: self.looked_at.contains(&number), track, takes })
        })
    }
}

/// The descriptors of processes, updated from call to call.
pub(crate) struct Paths {
    known: Known,
    descriptors: Descriptors,
}

impl Paths {
    pub fn new(known: Known) -> Self {
        Self { known, descriptors: Descriptors::new(Box::<DescriptorLinks>::default()) }
    }

    /// Forgets the descriptors: some calls were not recorded.
    pub fn forget(&mut self) {
        self.descriptors = Descriptors::new(Box::<DescriptorLinks>::default());
    }

    /// The path of a call, whose effect on descriptors is applied at the same time.
    pub fn of(&mut self, name: &str, call: &SystemCall<'_>) -> Option<Rc<str>> {
        let signature = self.known.signatures.get(&call.number).filter(|_| call.abi == Abi::NATIVE)?;
        let own = BY_DESCRIPTOR.contains(&name).then(|| self.descriptors.name(call.pid, call.args[0] as i32));
        let own: Option<Rc<str>> = own.flatten().map(Into::into);
        self.descriptors.apply(call, signature);
        if own.is_some() {
            return own;
        }
        // As an absolute path, if it was opened.
        let opened = call.value().filter(|_| name.starts_with("open"));
        if let Some(path) = opened.and_then(|fd| self.descriptors.name(call.pid, i32::try_from(fd).ok()?)) {
            return Some(path.into());
        }
        let text = signature.takes().iter().position(|take| matches!(take.what, What::String { .. }))?;
        Some(String::from_utf8_lossy(call.piece(text)?.bytes).into())
    }
}
