//! Symbolizes frames of the kernel and its modules from `/proc/kallsyms`.
//!
//! The table is the running kernel's, so it is used only if the profile was recorded on this machine since the last
//! boot: the kernel's address changes with every boot (KASLR).
//!
//! The kernel takes 40 to 70 ms to write its table, so it is cached on disk until the machine boots or a module is
//! loaded. Code that comes and goes without either (BPF programs, trampolines) is not cached: if a frame is
//! not in the cached part, the table is read after all.

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

/// Version of the cached format.
const VERSION: u32 = 1;
/// Size limit of the cache, in bytes: a table takes 5 MB, and there is one for each boot.
const LIMIT: u64 = 32 << 20;

/// The running kernel's symbols, read on first use.
#[derive(Default)]
pub(crate) struct Kernel {
    kept: Mutex<KeptTable>,
    read: OnceLock<Result<Arc<Kallsyms>, Missing>>,
}

/// The table cached on disk.
#[derive(Default)]
enum KeptTable {
    /// Not looked up yet.
    #[default]
    Unknown,
    /// There is none, or it is superseded by the table that was read.
    Absent,
    /// Loaded.
    Loaded(Arc<Kallsyms>),
}

impl Kernel {
    /// Symbolizes the frames of the kernel or of one module.
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
        // A module is cached completely or not at all.
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
    /// Returns the cached table if it suffices; otherwise reads the kernel's, which replaces it.
    fn table(
        &self,
        options: &Options,
        is_enough: impl Fn(&Kallsyms) -> bool,
    ) -> Result<Arc<Kallsyms>, Missing> {
        if let Some(read) = self.read.get() {
            return read.clone();
        }
        // The data stay consistent if another thread panics.
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

    /// Returns the table that contains `address`.
    fn at(&self, module: &str, address: u64, options: &Options) -> Option<Arc<Kallsyms>> {
        self.table(options, |kept| kept.has(module, address)).ok()
    }

    /// Returns name and first address of the running kernel's function at `address`.
    pub fn name(&self, module: &str, address: u64, options: &Options) -> Option<(String, u64)> {
        self.at(module, address, options)?.find(module, address)
    }

    /// Returns the first address of the function at `address`, and the start of the next symbol.
    pub fn extent(&self, module: &str, address: u64, options: &Options) -> Option<(u64, u64)> {
        self.at(module, address, options)?.extent(module, address)
    }
}

/// Reads the kernel's table, and caches it.
fn read(options: &Options) -> Result<Kallsyms, Missing> {
    let unreadable = |error: std::io::Error| Missing::Unreadable {
        path: options.kallsyms.clone(),
        error: error.to_string(),
    };
    // The key is computed before the table is read, so that a module loaded in between changes the key.
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

/// Returns the cache of tables.
fn kept(options: &Options) -> Option<DiskCache> {
    let folder = options.cache.as_ref()?;
    Some(DiskCache::open_in(folder, "kernel", VERSION, LIMIT))
}

/// Checks that the recorded kernel is the running one, as far as the profile has the information.
pub(crate) fn is_running(meta: &Meta, options: &Options) -> Result<(), Missing> {
    let read = |file: &str| {
        let text = fs::read_to_string(options.proc.join(file)).unwrap_or_default();
        text.trim_end().to_owned()
    };
    let other = |recorded: String| Err(Missing::OtherKernel { recorded });
    if !options.kernel {
        return other("of another machine".into());
    }
    // The machine is not asked for what an unfinished profile lacks: this function is called repeatedly then.
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
    // Boot time has a resolution of one second, and clocks are adjusted.
    let slack = Duration::from_secs(5);
    if started.is_some_and(|seconds| recorded + slack < UNIX_EPOCH + Duration::from_secs(seconds)) {
        return other(format!("{}, before the machine's last start", release()));
    }
    Ok(())
}
