//! Rule: a file is read or written in small pieces.

use rustc_hash::FxHashMap;

use super::sizes::Sizes;
use super::{
    Basis, CallEvent, CallRule, Found, MOST, Measure, Rule, Watch, grouped, percent, rate, size, text,
};

const READS: &[&str] = &["read", "pread64"];
const WRITES: &[&str] = &["write", "pwrite64"];
/// Maximum median size of small calls, in bytes.
const SMALL: u64 = 4096;
/// Maximum median size for a pipe, in bytes. A read returns what is available, so only smaller requests indicate a
/// missing buffer.
const SMALL_OF_PIPE: u64 = 16;
/// Minimum number of calls per second on one descriptor.
const LEAST_PER_SECOND: f64 = 10_000.0;
/// Recommended number of bytes per call.
const BUFFER: f64 = 65536.0;
/// Prefix of a pipe's path.
const PIPE: &str = "pipe:[";
/// Directories of special files, whose sizes have another meaning.
const SPECIAL: [&str; 3] = ["/dev/", "/proc/", "/sys/"];

pub(in crate::advice) fn rule() -> CallRule {
    let rule = Rule {
        name: "small-file-io",
        claim: "reads or writes files in small pieces",
        pattern: "a file or pipe is read or written a few bytes at a time, without a buffer",
        threshold: text(format!(
            "{} calls a second on one file with a median below {}, of a pipe below {}",
            grouped(LEAST_PER_SECOND),
            size(SMALL),
            size(SMALL_OF_PIPE)
        )),
        remedy: "read and write through a buffer of 64 to 128 KiB (BufReader, BufWriter, setvbuf), or map the file; in a shell let awk or mapfile read, as read takes a byte at a time from a pipe",
        bound: text(format!("these calls, less what calls of {} would take", size(BUFFER as u64))),
        source: "coreutils, ioblksize.h: 128 KiB make calls cheap enough; measured for each KiB: 92 ns by 4 KiB, 19 ns by 64 KiB and more",
    };
    CallRule::new(rule, &["read", "pread64", "write", "pwrite64"], || Box::<Files>::default())
}

#[derive(Default)]
struct File {
    path: String,
    sizes: Sizes,
}

#[derive(Default)]
struct Files {
    /// Number of all reads, and of all writes.
    calls: [u64; 2],
    /// By process, descriptor, and direction (`true`: written).
    files: FxHashMap<(u32, u64, bool), File>,
}

impl Watch for Files {
    fn call(&mut self, call: &CallEvent<'_>) {
        let writes = WRITES.contains(&call.name);
        self.calls[usize::from(writes)] += 1;
        let is_regular = |path: &str| path.starts_with('/') && !SPECIAL.iter().any(|s| path.starts_with(s));
        let regular = call.path.filter(|path| is_regular(path) || path.starts_with(PIPE));
        let (Some(path), Ok(bytes)) = (regular, u64::try_from(call.result)) else { return };
        let key = (call.pid, call.arguments[0], writes);
        if self.files.len() >= MOST && !self.files.contains_key(&key) {
            return;
        }
        let file = self.files.entry(key).or_default();
        if file.path != path {
            // The descriptor now belongs to another file.
            *file = File { path: path.to_owned(), sizes: Sizes::default() };
        }
        file.sizes.add(bytes);
    }

    fn judge(&self, basis: &Basis) -> Option<Found> {
        let (&(_, _, writes), file) =
            self.files.iter().max_by_key(|(key, file)| (file.sizes.calls, **key))?;
        let (names, all) = if writes { (WRITES, self.calls[1]) } else { (READS, self.calls[0]) };
        let Sizes { calls, bytes, .. } = file.sizes;
        let small = if file.path.starts_with(PIPE) { SMALL_OF_PIPE } else { SMALL };
        if basis.rate(calls) < LEAST_PER_SECOND || file.sizes.median_below() > small {
            return None;
        }
        let needed = bytes as f64 * basis.costs.byte + bytes as f64 / BUFFER * basis.costs.call;
        let took = basis.part(names, calls, all);
        let what = if writes { "writes" } else { "reads" };
        Some(Found {
            about: file.path.clone(),
            measured: vec![
                rate(what, basis.rate(calls)),
                Measure { what: "mean size", value: file.sizes.mean(), unit: "B" },
                percent("these calls", took, basis.cpu_ns),
            ],
            cpu_ns: (took - needed).max(0.0),
            ..Found::default()
        })
    }
}
