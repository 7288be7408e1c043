//! Frames of the kernel and its modules, from `/proc/kallsyms`.
//!
//! The table is the running kernel's, so that it is used only if the profile was recorded on this machine since it
//! was started: at every start the kernel lies elsewhere (KASLR).
//!
//! The kernel takes 40 to 70 ms to write its table, so that it is kept on disk until the machine or a module is started
//! anew. Code that comes and goes without either (BPF programs, trampolines) is not in what is kept: where a frame is
//! not in the part that is, the table is read after all.

mod kallsyms;
mod key;

use std::fs;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use plumb_process::DiskCache;
use plumb_profile::{AddressSpace, Meta};

use crate::job::{Answer, FrameAddress, Job};
use crate::kernel::kallsyms::Kallsyms;
use crate::options::Options;
use crate::summary::Missing;

/// Version of the form in which the table is kept.
const VERSION: u32 = 1;
/// Most bytes that are kept: a table takes 5 MB, and there is one for each start of the machine.
const LIMIT: u64 = 32 << 20;

/// The running kernel's symbols, read when first asked for.
#[derive(Default)]
pub(crate) struct Kernel {
    kept: Mutex<KeptTable>,
    read: OnceLock<Result<Arc<Kallsyms>, Missing>>,
}

/// The table that was kept on disk.
#[derive(Default)]
enum KeptTable {
    /// Nobody asked for it yet.
    #[default]
    Unknown,
    /// There is none, or it is not needed any more: all that it says is in the one that was read.
    Absent,
    /// It is there.
    Loaded(Arc<Kallsyms>),
}

impl Kernel {
    /// Resolves the frames of the kernel or of one module.
    pub fn solve(&self, job: &Job, options: &Options, meta: &Meta, answer: &mut Answer) {
        if let Err(missing) = is_running(meta, options) {
            answer.miss(missing);
            return;
        }
        if job.addresses != AddressSpace::Avma {
            answer.miss(Missing::Skipped { what: "its addresses are not those at run time".into() });
            return;
        }
        let module = job.module();
        // What is kept of a module is all of it.
        let has_all = |kept: &Kallsyms| job.frames.iter().all(|frame| kept.has(module, frame.address));
        let symbols = match self.table(options, has_all) {
            Ok(symbols) => symbols,
            Err(missing) => {
                answer.miss(missing);
                return;
            }
        };
        answer.summary.functions = symbols.len(module);
        if !answer.summary.sources.contains(&options.kallsyms) {
            answer.summary.sources.push(options.kallsyms.clone());
        }
        for &FrameAddress { address, frame, .. } in &job.frames {
            if let Some((name, start)) = symbols.find(module, address) {
                answer.set_name(frame, name, start);
            }
        }
    }
}

impl Kernel {
    /// The table that was kept, if that is enough; else all that the kernel says, for which the other one makes room.
    fn table(
        &self,
        options: &Options,
        is_enough: impl Fn(&Kallsyms) -> bool,
    ) -> Result<Arc<Kallsyms>, Missing> {
        if let Some(read) = self.read.get() {
            return read.clone();
        }
        // What is locked is whole whoever panicked.
        let mut known = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let KeptTable::Unknown = *known {
            let bytes = || kept(options)?.get(&key::of(options)?);
            let found = bytes().and_then(Kallsyms::from_bytes);
            *known = found.map_or(KeptTable::Absent, |table| KeptTable::Loaded(Arc::new(table)));
        }
        if let KeptTable::Loaded(table) = &*known
            && is_enough(table)
        {
            return Ok(Arc::clone(table));
        }
        let read = self.read.get_or_init(|| read(options).map(Arc::new)).clone();
        if read.is_ok() {
            *known = KeptTable::Absent;
        }
        read
    }

    /// The table that knows `address`.
    fn at(&self, module: &str, address: u64, options: &Options) -> Option<Arc<Kallsyms>> {
        self.table(options, |kept| kept.has(module, address)).ok()
    }

    /// Name and first address of the function at `address`, of the kernel that runs.
    pub fn name(&self, module: &str, address: u64, options: &Options) -> Option<(String, u64)> {
        self.at(module, address, options)?.find(module, address)
    }

    /// First address of the function at `address`, and where the next thing begins.
    pub fn extent(&self, module: &str, address: u64, options: &Options) -> Option<(u64, u64)> {
        self.at(module, address, options)?.extent(module, address)
    }
}

/// Reads the kernel's table, and keeps it.
fn read(options: &Options) -> Result<Kallsyms, Missing> {
    let unreadable = |error: std::io::Error| Missing::Unreadable {
        path: options.kallsyms.clone(),
        error: error.to_string(),
    };
    // Asked before the table is read, so that a module that is loaded meanwhile makes it another one.
    let key = key::of(options);
    let file = fs::File::open(&options.kallsyms).map_err(unreadable)?;
    let symbols = Kallsyms::read(file).map_err(unreadable)?.ok_or(Missing::KernelHidden)?;
    if let Some((kept, key)) = kept(options).zip(key)
        && key::of(options).as_ref() == Some(&key)
    {
        kept.put(&key, &symbols.to_bytes());
    }
    Ok(symbols)
}

/// Where tables are kept.
fn kept(options: &Options) -> Option<DiskCache> {
    let folder = options.cache.as_ref()?;
    Some(DiskCache::open_in(folder, "kernel", VERSION, LIMIT))
}

/// Whether the kernel that was recorded is the one that runs, as far as the profile says.
pub(crate) fn is_running(meta: &Meta, options: &Options) -> Result<(), Missing> {
    let read = |file: &str| {
        let text = fs::read_to_string(options.proc.join(file)).unwrap_or_default();
        text.trim_end().to_owned()
    };
    let other = |recorded: String| Err(Missing::OtherKernel { recorded });
    if !options.kernel {
        return other("of another machine".into());
    }
    // What a profile that is being made doesn't say is not looked up: this is asked again and again then.
    let release = || read("sys/kernel/osrelease");
    if !meta.kernel.is_empty() && meta.kernel != release() {
        return other(meta.kernel.clone());
    }
    if !meta.host.is_empty() && meta.host != read("sys/kernel/hostname") {
        return other(format!("{} on {}", release(), meta.host));
    }
    if meta.start_unix_ns == 0 {
        return Ok(());
    }
    let recorded = UNIX_EPOCH + Duration::from_nanos(meta.start_unix_ns);
    let started = read("stat").lines().find_map(|line| line.strip_prefix("btime ")?.parse().ok());
    // The start is known to a second only, and clocks are set.
    let slack = Duration::from_secs(5);
    if started.is_some_and(|seconds| recorded + slack < UNIX_EPOCH + Duration::from_secs(seconds)) {
        return other(format!("{}, before the machine's last start", release()));
    }
    Ok(())
}
