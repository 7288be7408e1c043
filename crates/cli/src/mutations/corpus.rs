//! The inputs to mutate: a file in each format that plumb reads, with its reader.

use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use plumb_formats::{callgrind, chrome, csv, firefox, folded, native, pprof, speedscope};
use plumb_profile::{
    Address, AddressSpace, Dso, DsoKind, Event, Found, Frame, FrameKind, Process, Profile, Sample, Thread,
};
use plumb_symbolize::Options;

use super::change::with_checksums;
use super::perf_data;
use crate::args::FilterArgs;
use crate::cmd::script;
use crate::load;
use crate::terminal::Output;
use plumb_fixtures::Made;

/// A format with its seeds.
pub struct FileFormat {
    pub name: &'static str,
    pub seeds: Vec<Vec<u8>>,
    /// Applied to the bytes after a mutation.
    pub finish: fn(Vec<u8>) -> Vec<u8>,
    /// Reads the bytes: returns a profile, `None` for a rejected file, or an error.
    pub read: fn(&[u8], &Path) -> Result<Option<Profile>, String>,
}

/// All formats in which this machine can make files.
pub fn all() -> Vec<FileFormat> {
    let profile = made();
    let write = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = Vec::new();
        write(&mut bytes);
        bytes
    };
    let packed = write(&|out| pprof::write(&profile, out).unwrap());
    let unpacked = pprof_again(&packed);
    let mut recording = Cursor::new(Vec::new());
    native::write(&profile, &mut recording).unwrap();
    let fold = |annotate| folded::FoldedOptions { annotate, ..folded::FoldedOptions::default() };
    let perf_script = write(&|out| {
        let (fields, all) = (crate::render::perf_script::Fields::default(), FilterArgs::default());
        script::write(&profile, fields, &all, &mut Output::plain(out)).unwrap();
    });
    let format = |name, seeds| FileFormat { name, seeds, finish: |bytes| bytes, read: loaded };
    let mut formats = vec![
        FileFormat {
            finish: with_checksums,
            ..format(
                "plumb recording",
                vec![
                    recording.into_inner(),
                    include_bytes!("../../../formats/tests/data/1.0.plumb").to_vec(),
                ],
            )
        },
        format("pprof", vec![unpacked]),
        FileFormat { finish: gzipped, ..format("pprof, gzipped after", vec![pprof_again(&packed)]) },
        format("gzip", vec![packed]),
        format("speedscope", vec![write(&|out| speedscope::write(&profile, out).unwrap()), EVENTED.into()]),
        format(
            "folded",
            vec![
                write(&|out| folded::write(&profile, &fold(false), out).unwrap()),
                write(&|out| folded::write(&profile, &fold(true), out).unwrap()),
            ],
        ),
        format("perf script", vec![perf_script]),
        FileFormat {
            read: maps,
            ..format("/proc/PID/maps", vec![std::fs::read("/proc/self/maps").unwrap_or_default()])
        },
        FileFormat { read: perf_map, ..format("perf map", vec![MAP.into()]) },
        FileFormat { read: kallsyms, ..format("kallsyms", vec![KALLSYMS.into()]) },
    ];
    formats.extend(more(&profile).map(|(name, seeds)| format(name, seeds)));
    let programs = programs();
    if programs.is_empty() {
        plumb_fixtures::skip(
            plumb_fixtures::Requirement::Cc,
            "there is neither a C compiler nor /bin/true to change",
        );
    } else {
        formats.push(FileFormat { read: elf, ..format("ELF and DWARF", programs) });
    }
    formats
}

/// Formats without special handling, with their seeds.
fn more(profile: &Profile) -> [(&'static str, Vec<Vec<u8>>); 9] {
    let write = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = Vec::new();
        write(&mut bytes);
        bytes
    };
    [
        ("perf.data", vec![perf_data::file()]),
        ("jfr", vec![include_bytes!("../../../formats/tests/data/async-profiler-4.0.jfr").to_vec()]),
        ("Firefox Profiler", vec![write(&|out| firefox::write(profile, out).unwrap())]),
        ("zstd, xz", PACKED.map(<[u8]>::to_vec).to_vec()),
        ("callgrind", vec![write(&|out| callgrind::write(profile, out).unwrap()), CALLGRIND.into()]),
        ("trace events", vec![write(&|out| chrome::write(profile, out).unwrap()), TRACE.into()]),
        ("V8 CPU profile", vec![CPU_PROFILE.into()]),
        ("Go texts", GO_TEXTS.iter().map(|text| text.as_bytes().to_vec()).collect()),
        ("csv (refused)", vec![write(&|out| csv::write(profile, out).unwrap())]),
    ]
}

const EVENTED: &str = r#"{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[{"name":"main"},
    {"name":"work","file":"a.c","line":3}]},"profiles":[{"type":"evented","name":"a (pid 1, tid 2) cpu-clock","unit":"milliseconds",
    "events":[{"type":"O","frame":0,"at":0},{"type":"O","frame":1,"at":1.5},{"type":"C","frame":1,"at":3},{"type":"C","frame":0,"at":4}]}]}"#;

const CPU_PROFILE: &str = r#"{"nodes":[{"id":1,"callFrame":{"functionName":"(root)","url":"","lineNumber":-1},"children":[2,4]},
    {"id":2,"callFrame":{"functionName":"run","url":"file:///a.js","lineNumber":0},"children":[3]},
    {"id":3,"callFrame":{"functionName":"","url":"file:///a.js","lineNumber":6}},{"id":4,"callFrame":{"functionName":"(idle)"}}],
    "startTime":1000,"endTime":2000,"samples":[2,3,4,3],"timeDeltas":[100,200,50,400]}"#;

const TRACE: &str = r#"[{"ph":"M","pid":1,"tid":2,"name":"thread_name","args":{"name":"main"}},{"ph":"B","pid":1,"tid":2,"name":"load","ts":10},
    {"ph":"X","pid":1,"tid":2,"name":"parse","ts":12.5,"dur":4},{"ph":"E","pid":1,"tid":2,"ts":30},
    {"ph":"P","pid":1,"tid":2,"id":"0x1","name":"Profile","ts":1,"args":{"data":{"startTime":1000}}},
    {"ph":"P","pid":1,"tid":3,"id":"0x1","name":"ProfileChunk","ts":2,"args":{"data":{"cpuProfile":{"nodes":[{"id":1,
    "callFrame":{"functionName":"(root)"}},{"id":2,"parent":1,"callFrame":{"functionName":"f","url":"b.js","lineNumber":4}}],"samples":[2,2]},
    "timeDeltas":[100,100]}}}]"#;

const CALLGRIND: &str = "# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\ncmd:  ./q\npositions: instr line\nevents: Ir Dr\n\nob=(8) /tmp/q\n\
                         fl=(1) /tmp/q.c\nfn=(5) main\n0x10 7 4 1\ncfn=(6) a\ncalls=1 0x20 -3\n* * 120 7\n+4 +1 18\n\nfn=(6)\n0x20 4 100 7\ncfn=(5)\n\
                         calls=2 0 0\n* * 20 1\n";

const GO_TEXTS: [&str; 4] = [
    "heap profile: 2: 528384 [3: 532480] @ heap/2048\n1: 524288 [1: 524288] @ 0x47c5cc\n#\t0x4d9ebd\tmain.alloc+0x7d\t/m.go:5\n\n0: 0 [1: 64] @ 0x1\n",
    "goroutine profile: total 3\n3 @ 0x47de8e 0x4158ee\n#\t0x4da3d8\tmain.func1+0x18\t/m.go:10\n\n",
    "goroutine 1 [running]:\nmain.(*T).dump({0x50, 0x9}, 0x7f?)\n\t/main.go:6 +0x145\n\ngoroutine 17 [chan receive, 3 minutes]:\nmain.f(...)\n\t/m.go:1 +0x1\n",
    "--- mutex:\ncycles/second=2000000000\nsampling period=5\n4000 2 @ 0x4da386\n#\t0x4da385\tsync.(*Mutex).Unlock+0x45\t/m.go:65\n",
];

/// `a;b 3` and a line break, by zstd 1.5 and xz 5.4.
const PACKED: [&[u8]; 2] = [include_bytes!("folded.zst"), include_bytes!("folded.xz")];

const MAP: &str =
    "70000000 40 LazyCompile:*run /app/a.js:3\n0x70000040 0x10 stub\n70000010 8 new\n70000000 100 over\n";

const KALLSYMS: &str = "ffffffff81000000 T _stext\nffffffff81000010 t do_work\nffffffff81000200 T vfs_read\nffffffff81000400 T _etext\n\
                        ffffffffc0000000 t init_it\t[module]\nffffffffc0000100 t work_it\t[module]\n";

/// A profile with some of everything.
fn made() -> Profile {
    let mut made = Made::new();
    for number in 0..12 {
        let who = format!("work er/7/{}", 7 + number % 3);
        let stack =
            format!("_start@app;main:3+pick:{number}@app;send@libc.so;0x{number:x}@libc.so;tcp_send@k");
        made.sample(&who, &stack, 1_001_001).sample(&who, "!;deep@app", 1_001_001);
    }
    made.event("page-faults", "page-faults");
    made.sample("other/9/9", "main@app;a;b\u{202e}@app".replace(";b", "+b").as_str(), 3);
    made.profile.meta.symbolized = true;
    made.profile.meta.command = vec!["app".into(), "--fast".into()];
    made.profile.meta.frequency_hz = Some(999);
    made.profile
}

fn loaded(bytes: &[u8], _: &Path) -> Result<Option<Profile>, String> {
    let mut profile =
        load::parsed(Cursor::new(bytes), "input", None).map_err(|error| format!("{error:#}"))?;
    if !profile.meta.symbolized {
        // The kernel's symbol table is not an input, and long.
        plumb_symbolize::symbolize(&mut profile, &Options { kernel: false, ..options() }, &mut |_| {});
    }
    plumb_symbolize::make_readable(&mut profile);
    Ok(Some(profile))
}

fn pprof_again(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(packed), &mut bytes).unwrap();
    bytes
}

fn gzipped(bytes: Vec<u8>) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    out.write_all(&bytes).unwrap();
    out.finish().unwrap()
}

fn maps(bytes: &[u8], _: &Path) -> Result<Option<Profile>, String> {
    match plumb_process::parse_maps(bytes).count() {
        0 => Err("no mappings".into()),
        _ => Ok(None),
    }
}

/// A profile with frames in one file.
fn with_frames(path: &str, kind: DsoKind, addresses: AddressSpace, at: impl Iterator<Item = u64>) -> Profile {
    let mut profile = Profile::default();
    let empty = profile.strings.empty();
    let path = profile.strings.add(path);
    let dso = profile.dsos.add(Dso { path, build_id: None, kind, addresses });
    let event = profile.events.push(Event { name: empty, unit: empty });
    let process = profile.processes.push(Process { pid: 1, ppid: 0, exe: path });
    let thread = profile.threads.push(Thread { process, tid: 1, comm: empty });
    for address in at {
        let kind = if kind.is_kernel() { FrameKind::Kernel } else { FrameKind::User };
        let address = Address(address);
        let frame = profile.frames.add(Frame {
            kind,
            dso: Some(dso),
            address,
            is_return: false,
            found: Found::Sampled,
        });
        let stack = profile.add_stack(&[frame]);
        profile.samples.push(Sample { time_ns: 1, thread, cpu: 0, event, stack, syscall: None, weight: 1 });
    }
    profile
}

/// Looks up the frames' names; a parser's panic that the crate caught is a failure.
fn named(mut profile: Profile, options: &Options) -> Result<Option<Profile>, String> {
    let summary = plumb_symbolize::symbolize(&mut profile, options, &mut |_| {});
    plumb_symbolize::make_readable(&mut profile);
    for missing in summary.dsos.iter().flat_map(|dso| &dso.missing) {
        assert!(!missing.to_string().contains("parser failed"), "{missing}");
    }
    match summary.dsos.iter().map(|dso| dso.named).sum::<usize>() {
        0 => Err("no names".into()),
        _ => Ok(Some(profile)),
    }
}

fn options() -> Options {
    Options { debug_roots: Vec::new(), cache: None, threads: 1, ..Options::default() }
}

fn perf_map(bytes: &[u8], folder: &Path) -> Result<Option<Profile>, String> {
    const PID: u32 = u32::MAX - 7;
    std::fs::write(folder.join(format!("perf-{PID}.map")), bytes).unwrap();
    let at = (0..40).map(|step| 0x7000_0000 + 4 * step);
    let profile = with_frames("[anon]", DsoKind::Anonymous { pid: PID }, AddressSpace::Avma, at);
    named(profile, &Options { perf_maps: folder.into(), ..options() })
}

fn kallsyms(bytes: &[u8], folder: &Path) -> Result<Option<Profile>, String> {
    let kallsyms = folder.join("kallsyms");
    std::fs::write(&kallsyms, bytes).unwrap();
    let at = (0..40).map(|step| 0xffff_ffff_8100_0000 + 32 * step);
    let profile = with_frames("[kernel.kallsyms]", DsoKind::Kernel, AddressSpace::Avma, at);
    named(profile, &Options { kallsyms, ..options() })
}

fn elf(bytes: &[u8], folder: &Path) -> Result<Option<Profile>, String> {
    let path = folder.join("program");
    std::fs::write(&path, bytes).unwrap();
    if let Ok(elf) = plumb_process::Elf::read(Cursor::new(bytes)) {
        let (stated, sections) = (elf.code().count(), elf.unwind_sections_in(bytes));
        std::hint::black_box((stated, sections));
    }
    let at = (0..120).map(|step| 0x1000 + 0x35 * step);
    named(with_frames(&path.to_string_lossy(), DsoKind::File, AddressSpace::Svma, at), &options())
}

/// Small programs: with two versions of DWARF, compressed, and without.
fn programs() -> Vec<Vec<u8>> {
    let folder = std::env::temp_dir().join(format!("plumb-mutations-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let source = folder.join("small.c");
    let text = "static inline int inner(int x) { return x * x + 1; }\nint outer(int x) { int s = 0; for (int i = 0; i < x; i++) s += \
                inner(i); return s; }\nint main(int c, char **v) { return outer(c) + inner(c); }\n";
    std::fs::write(&source, text).unwrap();
    let build = |number: usize, flags: &[&str]| -> Option<Vec<u8>> {
        let program: PathBuf = folder.join(format!("program-{number}"));
        let built =
            std::process::Command::new("gcc").args(flags).arg("-o").arg(&program).arg(&source).status();
        built.ok().filter(std::process::ExitStatus::success)?;
        std::fs::read(program).ok()
    };
    let flags: [&[&str]; 3] = [&["-O2", "-g"], &["-O2", "-gdwarf-4", "-gz=zlib"], &["-O1", "-s"]];
    let mut programs: Vec<Vec<u8>> =
        flags.iter().enumerate().filter_map(|(number, flags)| build(number, flags)).collect();
    programs.extend(std::fs::read("/bin/true").ok().filter(|_| programs.is_empty()));
    let _ = std::fs::remove_dir_all(folder);
    programs
}
