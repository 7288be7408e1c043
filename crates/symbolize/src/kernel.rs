//! Frames of the kernel and its modules, from `/proc/kallsyms`.
//!
//! The table is the running kernel's, so that it is used only if the profile was recorded on this machine since it
//! was started: at every start the kernel lies elsewhere (KASLR).

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plumb_profile::{AddressSpace, DsoKind, Meta};

use crate::job::{Answer, FoundFunction, Job, Place};
use crate::options::Options;
use crate::summary::Missing;
use crate::table::{Bind, Symbol, SymbolTable};

/// Longest table that is read: 50 times a distribution kernel's.
const MAX_BYTES: u64 = 512 << 20;
/// A symbol that no other of its module follows ends here at the latest, as in perf.
const PAGE: u64 = 4096;

/// The running kernel's symbols, read when first asked for.
#[derive(Default)]
pub(crate) struct Kernel {
    symbols: OnceLock<Result<Kallsyms, Missing>>,
}

impl Kernel {
    /// Resolves the frames of the kernel or of one module.
    pub fn solve(&self, job: &Job, options: &Options, meta: &Meta) -> Answer {
        let mut answer = Answer::new(job);
        if let Err(missing) = is_running(meta, options) {
            answer.miss(missing);
            return answer;
        }
        let symbols = match self.symbols.get_or_init(|| Kallsyms::read(&options.kallsyms)) {
            Ok(symbols) => symbols,
            Err(missing) => {
                answer.miss(missing.clone());
                return answer;
            }
        };
        if job.addresses != AddressSpace::Avma {
            answer.miss(Missing::Skipped { what: "its addresses are not those at run time".into() });
            return answer;
        }
        let module = if job.kind == DsoKind::Kernel { "" } else { job.path.as_str() };
        answer.summary.functions = symbols.modules.get(module).map_or(0, SymbolTable::len);
        answer.summary.sources.push(options.kallsyms.clone());
        for &(frame, address) in &job.frames {
            let Some((name, start)) = symbols.find(module, address) else { continue };
            let function = FoundFunction {
                name,
                linkage_name: String::new(),
                start: Some(start),
                source_file: String::new(),
            };
            let function = answer.function(function);
            answer.set(frame, &[Place { function, file: 0, line: 0, inlined: false }]);
        }
        answer
    }
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
    let release = read("sys/kernel/osrelease");
    if !meta.kernel.is_empty() && meta.kernel != release {
        return other(meta.kernel.clone());
    }
    let host = read("sys/kernel/hostname");
    if !meta.host.is_empty() && meta.host != host {
        return other(format!("{} on {}", release, meta.host));
    }
    let started = read("stat").lines().find_map(|line| line.strip_prefix("btime ")?.parse().ok());
    let started = started.map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds));
    let recorded = (meta.start_unix_ns > 0).then(|| UNIX_EPOCH + Duration::from_nanos(meta.start_unix_ns));
    // The start is known to a second only, and clocks are set.
    let slack = Duration::from_secs(5);
    if recorded.zip(started).is_some_and(|(recorded, started): (SystemTime, _)| recorded + slack < started) {
        return other(format!("{release}, before the machine's last start"));
    }
    Ok(())
}

/// The table, and where each module's names are in it.
struct Kallsyms {
    text: Vec<u8>,
    modules: HashMap<String, SymbolTable>,
}

impl Kallsyms {
    fn read(path: &Path) -> Result<Self, Missing> {
        let unreadable =
            |error: std::io::Error| Missing::Unreadable { path: path.into(), error: error.to_string() };
        let mut text = Vec::new();
        fs::File::open(path)
            .map_err(unreadable)?
            .take(MAX_BYTES)
            .read_to_end(&mut text)
            .map_err(unreadable)?;
        let mut modules: HashMap<&[u8], Vec<Symbol>> = HashMap::new();
        let mut is_shown = false;
        let mut offset = 0;
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            if let Some((symbol, module)) = row(line, offset) {
                is_shown |= symbol.start != 0;
                modules.entry(module).or_default().push(symbol);
            }
            offset += line.len();
        }
        if !is_shown {
            return Err(Missing::KernelHidden);
        }
        let modules = modules
            .into_iter()
            .map(|(name, mut symbols)| {
                let last = symbols.iter().map(|symbol| symbol.start).max().unwrap_or(0);
                let end =
                    last.checked_next_multiple_of(PAGE).map_or(u64::MAX, |end| end.saturating_add(PAGE));
                symbols.iter_mut().for_each(|symbol| symbol.limit = end);
                (String::from_utf8_lossy(name).into_owned(), SymbolTable::new(symbols))
            })
            .collect();
        Ok(Self { text, modules })
    }

    /// Name and first address of the function at `address`, in `module` or, if that isn't said rightly (code that was
    /// loaded later, such as BPF programs), in any.
    fn find(&self, module: &str, address: u64) -> Option<(String, u64)> {
        let in_table = |table: &SymbolTable| {
            let symbol = table.find(address, |symbol| self.name(symbol))?;
            // Data comes after the last function, and has symbols of its own.
            self.is_code(&symbol).then(|| (self.name(&symbol), symbol.start))
        };
        let own = self.modules.get(module).and_then(in_table);
        own.or_else(|| self.modules.values().find_map(in_table))
    }

    fn name(&self, symbol: &Symbol) -> String {
        let rest = self.text.get(symbol.name as usize..).unwrap_or_default();
        let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        String::from_utf8_lossy(&rest[..end]).into_owned()
    }

    fn is_code(&self, symbol: &Symbol) -> bool {
        let kind = (symbol.name as usize).checked_sub(2).and_then(|at| self.text.get(at));
        kind.is_some_and(|kind| b"tTwW".contains(kind))
    }
}

/// A row of the table (`ffffffff81000000 T _stext`, behind a tab the module), which begins at `offset` of the text.
fn row(line: &[u8], offset: usize) -> Option<(Symbol, &[u8])> {
    let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    let (address, kind, _name) = (fields.next()?, fields.next()?, fields.next()?);
    let start = u64::from_str_radix(std::str::from_utf8(address).ok()?, 16).ok()?;
    let bind = match kind {
        b"w" | b"W" | b"v" | b"V" => Bind::Weak,
        [kind] if kind.is_ascii_uppercase() => Bind::Global,
        [b'a' | b'A' | b'U'] => return None,
        _ => Bind::Local,
    };
    // Where the name is: behind the address, the kind and a blank each.
    let at = offset + address.len() + kind.len() + 2;
    Some((
        Symbol { start, size: 0, limit: u64::MAX, name: u32::try_from(at).ok()?, bind },
        fields.next().unwrap_or_default(),
    ))
}
