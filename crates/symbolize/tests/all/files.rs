//! Tests of the sources of symbols and lines: separate debug files, MiniDebugInfo, symbol tables, maps; and of the messages if they are
//! missing.

#![allow(clippy::unwrap_used)] // A test that can go no further fails.

use crate::truth;
use std::fs;
use std::io::{Cursor, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::truth::{Folder, build_id, have, options, resolve, run};
use plumb_fixtures::{Requirement, skip};
use plumb_profile::{AddressSpace, BuildId, Dso, DsoKind, Profile};
use plumb_symbolize::{Missing, Options, Progress, symbolize};

/// A program, and an address in `fill`, which is not exported and calls an inlined function.
struct Program {
    folder: Folder,
    file: PathBuf,
    inside: u64,
}

const TOOLS: [&str; 4] = ["g++", "objcopy", "nm", "readelf"];

fn program(name: &str) -> Program {
    let folder = Folder::new(name);
    let file = truth::build(&folder, "program", &["-O2", "-g"]);
    let symbols = run("nm", &[file.to_str().unwrap()]);
    let line = symbols.lines().find(|line| line.ends_with(" t _ZL4filli")).unwrap();
    let inside = u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap();
    // Some bytes on it is in the loop, where `mixed` was inlined.
    Program { folder, file, inside: inside + 0x20 }
}

impl Program {
    /// The program without debug information, which is returned as a file of its own.
    fn strip(&self) -> PathBuf {
        let debug = self.folder.join("program.debug");
        run("objcopy", &["--only-keep-debug", path(&self.file), path(&debug)]);
        run("objcopy", &["--strip-all", path(&self.file)]);
        debug
    }

    /// Returns the frames found for the address, the missing sources, and the sources used.
    fn look(&self, options: &Options) -> (truth::Chain, Vec<Missing>, Vec<PathBuf>) {
        let (mut profile, _) = truth::profile(&self.file, build_id(&self.file), &[self.inside]);
        let (found, summary) = resolve(&mut profile, options);
        let dso = summary.dsos.into_iter().next().unwrap();
        (found[&self.inside].clone(), dso.missing, dso.sources)
    }
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Whether the whole chain is there: `fill`, with lines, and something inlined into it.
fn is_full(chain: &truth::Chain) -> bool {
    chain.len() > 1
        && chain[chain.len() - 1].0 == "_ZL4filli"
        && chain.iter().all(|(_, file, line)| !file.is_empty() && *line > 0)
}

#[test]
fn a_stripped_binary_has_no_local_names_and_says_so() {
    if !have(&TOOLS) {
        return;
    }
    let program = program("stripped");
    assert!(is_full(&program.look(&options(&program.folder)).0));
    fs::remove_file(program.strip()).unwrap();
    let (chain, missing, _) = program.look(&options(&program.folder));
    assert_eq!(chain, vec![]);
    assert_eq!(missing, [Missing::NoSymbols, Missing::NoDebugInfo]);
    assert!(missing.iter().all(|missing| !missing.remedy().is_empty()));
}

#[test]
fn of_a_stripped_function_it_is_known_where_it_begins() {
    if !have(&TOOLS) {
        return;
    }
    let program = program("begins");
    let symbols = run("nm", &["--defined-only", path(&program.file)]);
    let functions: Vec<u64> = symbols
        .lines()
        .filter(|line| line.contains(" t _ZL") || line.contains(" T _Z") || line.ends_with(" T main"))
        .map(|line| u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap())
        .collect();
    assert!(functions.len() > 2, "{symbols}");
    fs::remove_file(program.strip()).unwrap();
    let inside: Vec<u64> = functions.iter().flat_map(|start| [start + 1, start + 4]).collect();
    let (mut profile, _) = truth::profile(&program.file, build_id(&program.file), &inside);
    let (found, _) = resolve(&mut profile, &options(&program.folder));
    assert!(found.values().all(Vec::is_empty), "nobody knows a name: {found:?}");
    for (id, frame) in profile.frames.iter() {
        let start = profile.symbols.nameless_start(id).unwrap().0;
        assert!(
            functions.contains(&start) && frame.address.0 - start <= 4,
            "{:#x}: {start:#x}",
            frame.address.0
        );
    }
}

#[test]
fn a_stripped_program_still_begins_in_start() {
    if !have(&TOOLS) {
        return;
    }
    let mut program = program("start");
    let symbols = run("nm", &[path(&program.file)]);
    let line = symbols.lines().find(|line| line.ends_with(" T _start")).unwrap();
    let start = u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap();
    fs::remove_file(program.strip()).unwrap();
    // The return address is after its call of `__libc_start_main`, near its end.
    for (address, name) in [(start, Some("_start")), (start + 0x20, Some("_start")), (start + 0x40, None)] {
        program.inside = address;
        let (chain, _, _) = program.look(&options(&program.folder));
        assert_eq!(chain.first().map(|first| first.0.as_str()), name, "{address:#x}");
    }
}

#[test]
fn a_debug_file_is_found_by_build_id() {
    if !have(&TOOLS) {
        return;
    }
    let program = program("by-id");
    let debug = program.strip();
    let id = build_id(&program.file).unwrap().to_string();
    let folder = program.folder.join("debug/.build-id").join(&id[..2]);
    fs::create_dir_all(&folder).unwrap();
    let there = folder.join(format!("{}.debug", &id[2..]));
    fs::rename(debug, &there).unwrap();
    let (chain, missing, sources) = program.look(&options(&program.folder));
    assert!(is_full(&chain), "{chain:?} {missing:?}");
    assert_eq!(sources, [program.file.clone(), there]);
}

#[test]
fn a_linked_debug_file_is_used_only_if_it_is_the_right_one() {
    if !have(&TOOLS) {
        return;
    }
    let mut program = program("by-link");
    // Without build id it is the checksum that counts.
    let bare = program.folder.join("bare");
    run("objcopy", &["--remove-section=.note.gnu.build-id", path(&program.file), path(&bare)]);
    program.file = bare;
    let debug = program.strip();
    run("objcopy", &[&format!("--add-gnu-debuglink={}", path(&debug)), path(&program.file)]);
    let (chain, missing, _) = program.look(&options(&program.folder));
    assert!(is_full(&chain), "{chain:?} {missing:?}");
    // Now the same file in the `.debug` directory.
    let hidden = program.folder.join(".debug/program.debug");
    fs::create_dir(program.folder.join(".debug")).unwrap();
    fs::rename(&debug, &hidden).unwrap();
    assert!(is_full(&program.look(&options(&program.folder)).0));
    // Another byte, another file.
    let mut bytes = fs::read(&hidden).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&hidden, bytes).unwrap();
    let (chain, missing, _) = program.look(&options(&program.folder));
    assert_eq!(chain, vec![]);
    assert!(missing.contains(&Missing::Replaced { path: hidden }), "{missing:?}");
}

#[test]
fn mini_debug_info_names_local_functions() {
    if !have(&TOOLS) || !have(&["xz"]) {
        return;
    }
    let program = program("mini");
    let debug = program.strip();
    let mini = program.folder.join("mini");
    run(
        "objcopy",
        &["-S", "--remove-section=.comment", "--keep-symbol=_ZL4filli", path(&debug), path(&mini)],
    );
    run("xz", &[path(&mini)]);
    let section = format!(".gnu_debugdata={}.xz", path(&mini));
    run("objcopy", &["--add-section", &section, path(&program.file)]);
    fs::remove_file(debug).unwrap();
    let (chain, missing, _) = program.look(&options(&program.folder));
    assert_eq!(chain, [("_ZL4filli".to_owned(), String::new(), 0)], "{missing:?}");
    assert_eq!(missing, [Missing::NoDebugInfo]);
}

#[test]
fn another_file_in_the_place_of_the_recorded_one_is_not_used() {
    if !have(&TOOLS) {
        return;
    }
    let program = program("replaced");
    let (mut profile, _) = truth::profile(&program.file, BuildId::new(&[7; 20]), &[program.inside]);
    let (found, summary) = resolve(&mut profile, &options(&program.folder));
    assert_eq!(found[&program.inside], vec![]);
    assert_eq!(summary.dsos[0].missing, [Missing::Replaced { path: program.file.clone() }]);
    // The recorder may still hold the right one.
    let (mut profile, dso) =
        truth::profile(Path::new("/nowhere/program"), build_id(&program.file), &[program.inside]);
    let mut options = options(&program.folder);
    options.images.insert(dso, vec![program.file.clone()]);
    assert!(is_full(&resolve(&mut profile, &options).0[&program.inside]));
}

#[test]
fn a_file_without_build_id_that_was_written_after_the_recording_is_not_used() {
    if !have(&TOOLS) {
        return;
    }
    let program = program("newer");
    let (mut profile, _) = truth::profile(&program.file, None, &[program.inside]);
    profile.meta.start_unix_ns = 1;
    profile.meta.duration_ns = 1_000_000_000;
    let (found, summary) = resolve(&mut profile, &options(&program.folder));
    assert_eq!(found[&program.inside], vec![]);
    assert_eq!(summary.dsos[0].missing, [Missing::Replaced { path: program.file.clone() }]);
}

#[test]
fn stubs_of_the_procedure_linkage_table_are_named() {
    if !have(&TOOLS) || !have(&["objdump"]) {
        return;
    }
    for flags in [&["-O2"][..], &["-O2", "-fcf-protection=full", "-Wl,-z,ibtplt"], &["-O2", "-Wl,-z,now"]] {
        let folder = Folder::new("plt");
        let file = truth::build(&folder, "program", flags);
        // objdump names the same stubs, by its own reading of the code.
        let listing = run("objdump", &["-d", "-j", ".plt", "-j", ".plt.sec", "-j", ".plt.got", path(&file)]);
        let stubs: Vec<(u64, &str)> = listing
            .lines()
            .filter_map(|line| {
                let (address, name) = line.strip_suffix(">:")?.split_once(" <")?;
                (name.ends_with("@plt")).then(|| (u64::from_str_radix(address, 16).unwrap(), name))
            })
            .collect();
        assert!(stubs.len() > 5, "{listing}");
        let addresses: Vec<u64> = stubs.iter().map(|(address, _)| address + 5).collect();
        let (mut profile, _) = truth::profile(&file, None, &addresses);
        let (found, _) = resolve(&mut profile, &options(&folder));
        for (address, name) in stubs {
            let chain = &found[&(address + 5)];
            assert_eq!(chain.first().map(|first| first.0.as_str()), Some(name), "{address:#x}");
        }
    }
}

fn kernel_profile(addresses: &[u64]) -> Profile {
    let mut profile = Profile::default();
    let path = profile.strings.add("[kernel.kallsyms]");
    let dso = Dso { path, build_id: None, kind: DsoKind::Kernel, addresses: AddressSpace::Avma };
    truth::with_dso(profile, dso, addresses).0
}

#[test]
fn kernel_functions_come_from_kallsyms() {
    let folder = Folder::new("kallsyms");
    let file = folder.join("kallsyms");
    let text = "ffffffff81000000 T _text\nffffffff81000000 T startup_64\nffffffff81000100 t local\n\
                ffffffff81000200 D data\nffffffffa0000000 t inner\t[mod]\nffffffffa0000100 T outer\t[mod]\n";
    fs::write(&file, text).unwrap();
    let addresses = [
        0xffff_ffff_8100_0005,
        0xffff_ffff_8100_01ff,
        0xffff_ffff_8100_0200,
        0xffff_ffff_a000_00ff,
        0xffff_ffff_a000_0100,
        0xffff_ffff_b000_0000,
    ];
    let mut profile = kernel_profile(&addresses);
    let options = Options { kallsyms: file.clone(), ..options(&folder) };
    let (found, _) = resolve(&mut profile, &options);
    let names: Vec<&str> =
        addresses.iter().map(|address| found[address].first().map_or("", |(name, _, _)| name)).collect();
    assert_eq!(names, ["startup_64", "local", "", "inner", "outer", ""]);

    fs::write(&file, "0000000000000000 T _text\n0000000000000000 t local\n").unwrap();
    let (_, summary) = resolve(&mut kernel_profile(&addresses), &options);
    assert_eq!(summary.dsos[0].missing, [Missing::KernelHidden]);

    let mut elsewhere = kernel_profile(&addresses);
    elsewhere.meta.kernel = "1.2.3-other".into();
    let (_, summary) = resolve(&mut elsewhere, &options);
    assert_eq!(summary.dsos[0].missing, [Missing::OtherKernel { recorded: "1.2.3-other".into() }]);
}

#[test]
fn the_vdso_is_read_from_memory() {
    // As recordings have it, and as other profiles do.
    let image = plumb_process::vdso().expect("this process has one");
    let own = plumb_process::Elf::read(Cursor::new(&image)).expect("it is ELF").build_id;
    let own = BuildId::new(&own.expect("the kernel's build gives it one")).expect("it has bytes");
    for build_id in [None, Some(own)] {
        let mut profile = Profile::default();
        let path = profile.strings.add("[vdso]");
        let dso = Dso { path, build_id, kind: DsoKind::Vdso, addresses: AddressSpace::Svma };
        let addresses: Vec<u64> = (0..0x2000).step_by(16).collect();
        let (mut profile, _) = truth::with_dso(profile, dso, &addresses);
        let (found, summary) = resolve(&mut profile, &Options::default());
        let names: Vec<&str> = found.values().flatten().map(|(name, _, _)| name.as_str()).collect();
        assert!(names.contains(&"__vdso_clock_gettime"), "{names:?} {summary:?}");
    }
}

/// A profile with an address in code that the process compiled as it ran.
fn jit(pid: u32) -> Profile {
    let mut profile = Profile::default();
    let path = profile.strings.add("[anon]");
    let kind = DsoKind::Anonymous { pid };
    let dso = Dso { path, build_id: None, kind, addresses: AddressSpace::Avma };
    truth::with_dso(profile, dso, &[0x7000_0010]).0
}

/// Anybody may write to `/tmp`: what counts is whose the process is, or was when it was seen.
#[test]
fn a_map_of_somebody_else_is_not_believed() {
    let folder = Folder::new("perf-map-owner");
    let map = folder.join("perf-41.map");
    fs::write(&map, "70000000 40 made_up\n").unwrap();
    let own = fs::metadata(&map).unwrap().uid();
    if own != 0 {
        skip(Requirement::Root, "only root can give a file to somebody else");
        return;
    }
    std::os::unix::fs::chown(&map, Some(4041), None).unwrap();
    let mut options = Options { perf_maps: folder.0.clone(), proc: folder.join("proc"), ..options(&folder) };
    let refused = Missing::NotOwned { path: map.clone(), owner: 0 };
    let (found, summary) = resolve(&mut jit(41), &options);
    assert_eq!((&found[&0x7000_0010][..], &summary.dsos[0].missing[..]), (&[][..], &[refused][..]));
    // A map of the process' user is accepted: while the process runs, and after its end if the user was noted before.
    let process = folder.join("proc/41");
    fs::create_dir_all(&process).unwrap();
    fs::write(process.join("status"), "Name:\tnode\nUid:\t4041\t4041\t4041\t4041\n").unwrap();
    assert_eq!(resolve(&mut jit(41), &options).0[&0x7000_0010][0].0, "made_up");
    fs::remove_dir_all(&process).unwrap();
    options.users.insert(41, 4041);
    assert_eq!(resolve(&mut jit(41), &options).0[&0x7000_0010][0].0, "made_up");
    // Nor does a link lead to what is another one's.
    let link = folder.join("perf-44.map");
    std::os::unix::fs::symlink(&map, &link).unwrap();
    let (found, summary) = resolve(&mut jit(44), &options);
    assert!(
        found[&0x7000_0010].is_empty()
            && matches!(&summary.dsos[0].missing[..], [Missing::Unreadable { path, .. }] if *path == link),
        "{summary:?}"
    );
}

#[test]
fn jit_code_is_named_by_its_map() {
    let folder = Folder::new("perf-map");
    let options = Options { perf_maps: folder.0.clone(), proc: folder.join("proc"), ..options(&folder) };
    fs::write(folder.join("perf-41.map"), "70000000 40 Lazy:*run /app.js:1\n").unwrap();
    let (found, _) = resolve(&mut jit(41), &options);
    assert_eq!(found[&0x7000_0010], [("Lazy:*run /app.js:1".to_owned(), String::new(), 0)]);
    // In a container the process has another number and another /tmp.
    let inner = folder.join("proc/42/root/tmp");
    fs::create_dir_all(&inner).unwrap();
    fs::write(folder.join("proc/42/status"), "Name:\tnode\nNSpid:\t42\t7\n").unwrap();
    fs::write(inner.join("perf-7.map"), "70000000 40 inside\n").unwrap();
    let (found, _) = resolve(&mut jit(42), &options);
    assert_eq!(found[&0x7000_0010], [("inside".to_owned(), String::new(), 0)]);
    let (_, summary) = resolve(&mut jit(43), &options);
    assert_eq!(summary.dsos[0].missing, [Missing::NoPerfMap { path: folder.join("perf-43.map") }]);
}

/// A jitdump with one function, as `perf inject --jit` reads it.
fn jitdump(name: &str) -> Vec<u8> {
    let halves = |values: &[u32]| values.iter().flat_map(|value| value.to_ne_bytes()).collect::<Vec<u8>>();
    let words = |values: &[u64]| values.iter().flat_map(|value| value.to_ne_bytes()).collect::<Vec<u8>>();
    let load = [&words(&[1, 0x7000_0000, 0x7000_0000, 0x40, 1])[8..], name.as_bytes(), &[0; 0x41]].concat();
    let header = [halves(&[0x4a69_5444, 1, 40, 62, 0, 7]), words(&[0, 0])].concat();
    let record = [halves(&[0, 24 + load.len() as u32]), words(&[1]), halves(&[7, 7]), load].concat();
    [header, record].concat()
}

#[test]
fn jit_code_is_named_by_the_jitdump_that_its_process_maps() {
    let folder = Folder::new("jitdump");
    let options = Options { perf_maps: folder.0.clone(), proc: folder.join("proc"), ..options(&folder) };
    let process = folder.join("proc/42");
    fs::create_dir_all(process.join("root/srv")).unwrap();
    fs::write(process.join("status"), "Name:\tnode\nNSpid:\t42\t7\n").unwrap();
    let maps = "7f0000000000-7f0000001000 r-xp 00000000 fe:01 99 /srv/jit-7.dump\n70000000-70001000 r-xp 00000000 00:00 0\n";
    fs::write(process.join("maps"), maps).unwrap();
    fs::write(process.join("root/srv/jit-7.dump"), jitdump("run /a.js:3")).unwrap();
    let (found, summary) = resolve(&mut jit(42), &options);
    assert_eq!(found[&0x7000_0010], [("run /a.js:3".to_owned(), String::new(), 0)], "{summary:?}");
    // Of a process that has ended nobody knows what it mapped; and a map has other code.
    fs::write(folder.join("jit-41.dump"), jitdump("ended")).unwrap();
    fs::write(folder.join("perf-41.map"), "70000000 40 map\n71000000 40 more\n").unwrap();
    assert_eq!(resolve(&mut jit(41), &options).0[&0x7000_0010][0].0, "ended");
    fs::write(folder.join("jit-41.dump"), b"JiTDrubbish").unwrap();
    let (found, summary) = resolve(&mut jit(41), &options);
    assert_eq!(found[&0x7000_0010][0].0, "map");
    assert!(matches!(&summary.dsos[0].missing[..], [Missing::Unreadable { .. }]), "{summary:?}");
}

#[test]
fn a_debuginfod_server_is_asked_only_if_wanted_and_once() {
    if !have(&TOOLS) || !have(&["curl"]) {
        return;
    }
    let program = program("debuginfod");
    let debug = fs::read(program.strip()).unwrap();
    fs::remove_file(program.folder.join("program.debug")).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        let length = stream.read(&mut request).unwrap();
        let header =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", debug.len());
        stream.write_all(header.as_bytes()).unwrap();
        stream.write_all(&debug[..1000]).unwrap();
        std::thread::sleep(Duration::from_millis(400));
        stream.write_all(&debug[1000..]).unwrap();
        // From here on nobody answers.
        String::from_utf8_lossy(&request[..length]).lines().next().unwrap().to_owned()
    });
    let wanted = Options {
        debuginfod: true,
        debuginfod_urls: vec![url.clone()],
        debuginfod_cache: Some(program.folder.join("cache")),
        ..options(&program.folder)
    };
    assert_eq!(program.look(&Options { debuginfod: false, ..wanted.clone() }).0, vec![]);
    let id = build_id(&program.file).unwrap();
    let (mut profile, _) = truth::profile(&program.file, Some(id.clone()), &[program.inside]);
    let mut told = Vec::new();
    symbolize(&mut profile, &wanted, &mut |progress| told.push(progress));
    assert_eq!(server.join().unwrap(), format!("GET /buildid/{id}/debuginfo HTTP/1.1"));
    assert!(matches!(&told[0], Progress::Download { bytes, .. } if *bytes > 0), "{told:?}");
    assert!(matches!(told.last(), Some(Progress::File { done: 1, total: 1, .. })), "{told:?}");
    // The second time it is in the cache.
    let (chain, missing, sources) = program.look(&wanted);
    assert!(is_full(&chain), "{missing:?}");
    assert!(sources.contains(&program.folder.join("cache").join(id.to_string()).join("debuginfo")));
    // A server that can't be reached is an answer, too, and a quick one, but says nothing of the file.
    fs::remove_dir_all(program.folder.join("cache")).unwrap();
    let (_, missing, _) = program.look(&wanted);
    assert!(missing.iter().any(|missing| matches!(missing, Missing::Download { .. })), "{missing:?}");
}

/// The cache notes a missing file as debuginfod's own client does: by an empty file, for some minutes.
#[test]
fn a_file_that_no_server_has_is_asked_for_once() {
    if !have(&TOOLS) || !have(&["curl"]) {
        return;
    }
    let program = program("debuginfod-none");
    program.strip();
    fs::remove_file(program.folder.join("program.debug")).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = |listener: &TcpListener| {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]).unwrap();
        stream
            .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            .unwrap();
    };
    let wanted = Options {
        debuginfod: true,
        debuginfod_urls: vec![url],
        debuginfod_cache: Some(program.folder.join("cache")),
        ..options(&program.folder)
    };
    let server = std::thread::spawn(move || {
        answer(&listener);
        listener
    });
    let errors = |missing: &[Missing]| missing.iter().map(ToString::to_string).collect::<String>();
    let (_, missing, _) = program.look(&wanted);
    assert!(errors(&missing).contains("404"), "{missing:?}");
    let listener = server.join().unwrap();
    let noted =
        program.folder.join("cache").join(build_id(&program.file).unwrap().to_string()).join("debuginfo");
    assert_eq!(fs::metadata(&noted).unwrap().len(), 0);
    // Nobody answers: a second request would wait for the limit of a minute.
    let (_, missing, _) = program.look(&wanted);
    assert!(errors(&missing).contains("a short while ago"), "{missing:?}");
    // After the time that the cache says it is asked again.
    fs::write(program.folder.join("cache/cache_miss_s"), "0\n").unwrap();
    let server = std::thread::spawn(move || answer(&listener));
    program.look(&wanted);
    server.join().unwrap();
}
