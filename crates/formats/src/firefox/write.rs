//! Writes a profile as the Firefox Profiler has it.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::io::{self, Write};

use plumb_profile::{
    AddressSpace, BuildId, DsoId, EventId, FrameId, FrameKind, Process, Profile, Sample, StackId, ThreadId,
    UnnamedFunctions,
};
use serde_json::{Value, json};

/// The format version written: the newest in which each thread has its own tables. The Firefox Profiler reads all versions up to its own.
const VERSION: u32 = 55;

/// Indices in the list of categories.
const USER: usize = 1;
const KERNEL: usize = 2;

/// Writes a thread for each thread and event, with samples sorted by time, and stacks, inlined calls, files and lines.
///
/// Weights are milliseconds if the event counts nanoseconds, otherwise counts.
pub fn write<W: Write>(profile: &Profile, out: W) -> io::Result<()> {
    let mut threads: BTreeMap<(ThreadId, EventId), Vec<Sample>> = BTreeMap::new();
    for sample in profile.samples.iter() {
        threads.entry((sample.thread, sample.event)).or_default().push(sample);
    }
    let mut libs = Libs { profile, known: HashMap::new(), list: Vec::new() };
    let unnamed = UnnamedFunctions::of(profile);
    let mut tids = HashMap::new();
    let mut written = Vec::new();
    for ((thread, event), samples) in threads {
        let mut tables = Tables::new(profile, &unnamed, &mut libs);
        let samples = tables.samples(event, &samples);
        let names = Names::new(profile, thread, event, &mut tids);
        written.push(tables.thread(&names, samples));
    }
    let file =
        json!({ "meta": meta(profile), "libs": libs.list, "threads": written, "pages": [], "counters": [] });
    let mut out = io::BufWriter::new(out);
    crate::json::write(&mut out, &file)?;
    out.flush()
}

fn meta(profile: &Profile) -> Value {
    let meta = &profile.meta;
    let category =
        |name: &str, color: &str| json!({ "name": name, "color": color, "subcategories": ["Other"] });
    json!({
        "preprocessedProfileVersion": VERSION,
        "version": 24,
        "interval": 1e3 / f64::from(meta.frequency_hz.unwrap_or(1000).max(1)),
        "startTime": meta.start_unix_ns as f64 / 1e6,
        "product": if meta.command.is_empty() { "plumb".into() } else { meta.command.join(" ") },
        "importedFrom": format!("plumb {}", env!("CARGO_PKG_VERSION")),
        "oscpu": format!("{} {}", meta.kernel, meta.arch).trim(),
        "processType": 0,
        "stackwalk": 1,
        "debug": false,
        "symbolicated": true,
        "sourceCodeIsNotOnSearchfox": true,
        "usesOnlyOneStackType": true,
        "doesNotUseFrameImplementation": true,
        "extensions": { "length": 0, "baseURL": [], "id": [], "name": [] },
        "categories": [category("Other", "grey"), category("User", "yellow"), category("Kernel", "orange")],
        "markerSchema": [],
        "sampleUnits": { "time": "ms", "eventDelay": "ms", "threadCPUDelta": "µs" },
        "extra": meta.warnings.iter().map(|text| json!({
            "label": "plumb",
            "entries": [{ "label": "Warning", "format": "string", "value": text }],
        })).collect::<Vec<_>>(),
    })
}

/// Files, shared by all threads.
struct Libs<'p> {
    profile: &'p Profile,
    known: HashMap<DsoId, usize>,
    list: Vec<Value>,
}

impl Libs<'_> {
    fn add(&mut self, id: DsoId) -> usize {
        if let Some(&known) = self.known.get(&id) {
            return known;
        }
        let dso = &self.profile.dsos[id];
        let path = self.profile.strings.get(dso.path);
        let name = path.rsplit('/').next().unwrap_or(path);
        self.list.push(json!({
            "name": name,
            "path": path,
            "debugName": name,
            "debugPath": path,
            "breakpadId": breakpad_id(dso.build_id.as_ref()),
            "codeId": dso.build_id.as_ref().map(ToString::to_string),
            "arch": if self.profile.meta.arch.is_empty() { Value::Null } else { self.profile.meta.arch.clone().into() },
        }));
        self.known.insert(id, self.list.len() - 1);
        self.list.len() - 1
    }
}

/// Returns a build id in the format of Breakpad's symbol servers: the first 16 bytes as a GUID, whose first three numbers are little-endian, and an
/// age of 0.
fn breakpad_id(build_id: Option<&BuildId>) -> String {
    let mut bytes = [0; 16];
    build_id.iter().flat_map(|id| id.bytes()).zip(&mut bytes).for_each(|(from, to)| *to = *from);
    for number in [0..4, 4..6, 6..8] {
        bytes[number].reverse();
    }
    bytes.iter().map(|byte| format!("{byte:02X}")).chain(["0".into()]).collect()
}

/// Names of a thread.
struct Names {
    name: String,
    process: String,
    pid: String,
    tid: String,
    is_main: bool,
}

impl Names {
    fn new(profile: &Profile, thread: ThreadId, event: EventId, tids: &mut HashMap<u32, u32>) -> Self {
        let one = &profile.threads[thread];
        let Process { pid, exe, .. } = profile.processes[one.process];
        let exe = profile.strings.get(exe);
        let comm = profile.strings.get(one.comm);
        let mut name = comm.to_owned();
        if profile.events.len() > 1 {
            name.push_str(&format!(" ({})", profile.strings.get(profile.events[event].name)));
        }
        // A renamed thread, or one with several events, becomes several here, which need their own ids.
        let times = tids.entry(one.tid).and_modify(|times| *times += 1).or_insert(0);
        let number = |id: u32| if id == Process::UNKNOWN { "unknown".to_owned() } else { id.to_string() };
        let tid = if *times == 0 { number(one.tid) } else { format!("{}.{times}", number(one.tid)) };
        let is_main = one.tid == pid && *times == 0;
        let process = exe.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(comm).to_owned();
        Names { name, process, pid: number(pid), tid, is_main }
    }
}

/// Distinct rows of a table.
struct Rows<T> {
    list: Vec<T>,
    known: HashMap<T, usize>,
}

impl<T: Clone + Eq + Hash> Rows<T> {
    fn new() -> Self {
        Rows { list: Vec::new(), known: HashMap::new() }
    }

    fn add(&mut self, row: T) -> usize {
        if let Some(&known) = self.known.get(&row) {
            return known;
        }
        self.list.push(row.clone());
        self.known.insert(row, self.list.len() - 1);
        self.list.len() - 1
    }

    fn column(&self, cell: impl Fn(&T) -> Value) -> Value {
        self.list.iter().map(cell).collect()
    }

    /// Returns a column with the same value in all cells.
    fn same(&self, cell: &Value) -> Value {
        vec![cell.clone(); self.list.len()].into()
    }
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Function {
    name: usize,
    resource: Option<usize>,
    file: Option<usize>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Row {
    address: Option<u64>,
    inline_depth: usize,
    category: usize,
    function: usize,
    line: u32,
}

/// The tables of one thread.
struct Tables<'t, 'p> {
    profile: &'p Profile,
    unnamed: &'t UnnamedFunctions,
    libs: &'t mut Libs<'p>,
    strings: Rows<String>,
    /// Resources by library.
    resources: Rows<usize>,
    functions: Rows<Function>,
    frames: Rows<Row>,
    /// Stacks as frame and caller.
    stacks: Rows<(usize, Option<usize>)>,
    known: HashMap<StackId, usize>,
}

impl<'t, 'p> Tables<'t, 'p> {
    fn new(profile: &'p Profile, unnamed: &'t UnnamedFunctions, libs: &'t mut Libs<'p>) -> Self {
        Tables {
            profile,
            unnamed,
            libs,
            strings: Rows::new(),
            resources: Rows::new(),
            functions: Rows::new(),
            frames: Rows::new(),
            stacks: Rows::new(),
            known: HashMap::new(),
        }
    }

    fn samples(&mut self, event: EventId, samples: &[Sample]) -> Value {
        let start = self.profile.meta.start_ns;
        let unit = self.profile.strings.get(self.profile.events[event].unit);
        let (kind, factor) = match unit {
            "ns" => ("tracing-ms", 1e6),
            "bytes" => ("bytes", 1.0),
            _ => ("samples", 1.0),
        };
        let stacks: Vec<usize> = samples.iter().map(|sample| self.stack(sample.stack)).collect();
        let time = |sample: &Sample| sample.time_ns.saturating_sub(start) as f64 / 1e6;
        let name = self.profile.strings.get(self.profile.events[event].name);
        let is_clock = matches!(name.split(':').next(), Some("cpu-clock" | "task-clock"));
        // The CPU usage graph is drawn from this.
        let used = |sample: &Sample| if is_clock { (sample.weight / 1000).into() } else { Value::Null };
        json!({
            "length": samples.len(),
            "stack": stacks,
            "time": samples.iter().map(time).collect::<Vec<f64>>(),
            "threadCPUDelta": samples.iter().map(used).collect::<Vec<Value>>(),
            "weight": samples.iter().map(|sample| sample.weight as f64 / factor).collect::<Vec<f64>>(),
            "weightType": kind,
        })
    }

    /// Returns the row of a stack.
    fn stack(&mut self, stack: Option<StackId>) -> usize {
        let Some(stack) = stack else {
            let frame = self.call(
                "[no stack recorded]",
                None,
                "",
                Row { address: None, inline_depth: 0, category: 0, function: 0, line: 0 },
            );
            return self.stacks.add((frame, None));
        };
        let (mut missing, mut at, mut above) = (Vec::new(), Some(stack), None);
        while let Some(id) = at {
            above = self.known.get(&id).copied();
            if above.is_some() {
                break;
            }
            missing.push(id);
            at = self.profile.stacks.node(id).caller;
        }
        for id in missing.into_iter().rev() {
            for frame in self.rows(self.profile.stacks.node(id).frame) {
                above = Some(self.stacks.add((frame, above)));
            }
            if let Some(row) = above {
                self.known.insert(id, row);
            }
        }
        // A stack has at least one frame.
        above.unwrap_or(0)
    }

    /// Returns the rows of a frame and the calls inlined into it, outermost first.
    fn rows(&mut self, id: FrameId) -> Vec<usize> {
        let profile = self.profile;
        let frame = &profile.frames[id];
        let category = match frame.kind {
            FrameKind::User => USER,
            FrameKind::Kernel => KERNEL,
            FrameKind::Truncation(_) => 0,
        };
        // Addresses of the kernel and of JIT code are not file addresses; the Firefox Profiler keeps 32 bits.
        let in_file = |dso: &DsoId| {
            matches!(profile.dsos[*dso].addresses, AddressSpace::Svma | AddressSpace::FileOffset)
        };
        let address =
            frame.dso.filter(in_file).map(|_| frame.lookup().0).filter(|&address| address < 1 << 32);
        let row = |inline_depth, line| Row { address, inline_depth, category, function: 0, line };
        if let Some(cut) = frame.cut() {
            return vec![self.call(
                &format!("[{}]", cut.text()),
                None,
                "",
                Row { address: None, ..row(0, 0) },
            )];
        }
        let lines = profile.symbols.of(id);
        if lines.is_empty() {
            let name = self.unnamed.find(profile, id).name(profile);
            return vec![self.call(&name, frame.dso, "", row(0, 0))];
        }
        let text = |id| profile.strings.get(id);
        let mut rows = Vec::with_capacity(lines.len());
        for (depth, line) in lines.iter().rev().enumerate() {
            let name = text(profile.symbols.functions[line.function].name);
            rows.push(self.call(name, frame.dso, text(line.file), row(depth, line.line)));
        }
        rows
    }

    fn call(&mut self, name: &str, dso: Option<DsoId>, file: &str, row: Row) -> usize {
        let name = self.strings.add(name.to_owned());
        let file = (!file.is_empty()).then(|| self.strings.add(file.to_owned()));
        let resource = dso.map(|dso| self.resources.add(self.libs.add(dso)));
        let function = self.functions.add(Function { name, resource, file });
        self.frames.add(Row { function, ..row })
    }

    fn thread(mut self, names: &Names, samples: Value) -> Value {
        let libs = &self.libs.list;
        let names_of_libs: Vec<Value> =
            self.resources.list.iter().map(|&lib| libs[lib]["name"].clone()).collect();
        let names_of_libs: Vec<usize> = names_of_libs
            .iter()
            .map(|name| self.strings.add(name.as_str().unwrap_or_default().to_owned()))
            .collect();
        let (nothing, zero) = (Value::Null, json!(0));
        let or = |number: Option<u64>, none: &Value| number.map_or_else(|| none.clone(), Value::from);
        let (frames, functions) = (&self.frames, &self.functions);
        json!({
            "name": names.name,
            "processName": names.process,
            "processType": "default",
            "isMainThread": names.is_main,
            "pid": names.pid,
            "tid": names.tid,
            "processStartupTime": 0,
            "processShutdownTime": null,
            "registerTime": 0,
            "unregisterTime": null,
            "pausedRanges": [],
            "markers": {
                "length": 0, "category": [], "data": [], "endTime": [], "name": [], "phase": [], "startTime": [],
            },
            "samples": samples,
            "stackTable": {
                "length": self.stacks.list.len(),
                "frame": self.stacks.column(|row| row.0.into()),
                "prefix": self.stacks.column(|row| row.1.into()),
            },
            "frameTable": {
                "length": frames.list.len(),
                "address": frames.column(|row| or(row.address, &json!(-1))),
                "inlineDepth": frames.column(|row| row.inline_depth.into()),
                "category": frames.column(|row| row.category.into()),
                "subcategory": frames.same(&zero),
                "func": frames.column(|row| row.function.into()),
                "nativeSymbol": frames.same(&nothing),
                "innerWindowID": frames.same(&zero),
                "line": frames.column(|row| or((row.line > 0).then_some(row.line.into()), &nothing)),
                "column": frames.same(&nothing),
            },
            "funcTable": {
                "length": functions.list.len(),
                "name": functions.column(|row| row.name.into()),
                "isJS": functions.same(&json!(false)),
                "relevantForJS": functions.same(&json!(false)),
                "resource": functions.column(|row| or(row.resource.map(|row| row as u64), &json!(-1))),
                "fileName": functions.column(|row| row.file.into()),
                "lineNumber": functions.same(&nothing),
                "columnNumber": functions.same(&nothing),
            },
            "resourceTable": {
                "length": self.resources.list.len(),
                "lib": self.resources.list,
                "name": names_of_libs,
                "host": self.resources.same(&nothing),
                // Type 1: a library.
                "type": self.resources.same(&json!(1)),
            },
            "nativeSymbols": { "length": 0, "address": [], "functionSize": [], "libIndex": [], "name": [] },
            "stringArray": self.strings.list,
        })
    }
}
