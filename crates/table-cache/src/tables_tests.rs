//! Tests of [`super`], on the test program itself.

use plumb_fixtures::{Requirement, needs_command};

use std::os::unix::fs::FileExt;

use super::*;

fn own() -> Source {
    Source::open(Path::new("/proc/self/exe")).unwrap()
}

#[test]
fn a_table_is_kept_and_found_by_its_build_id() {
    let cache = std::env::temp_dir().join(format!("plumb-tables-{}", std::process::id()));
    std::fs::create_dir_all(&cache).unwrap();
    let kept = TableCache::open_in(&cache);
    let table = own().of_calls().unwrap();
    assert_eq!(kept.get(b"an id"), None);
    kept.put(b"an id", table.clone());
    assert_eq!(kept.get(b"an id"), Some(table.with_build_id(b"an id")));
    assert_eq!(kept.get(b"another"), None);
    std::fs::remove_dir_all(&cache).unwrap();
}

#[test]
fn reading_code_in_pieces_finds_what_reading_it_at_once_finds() {
    let source = own();
    let mut whole: Vec<(Svma, Vec<u8>)> = Vec::new();
    for (address, offset, size) in source.elf.code() {
        let mut bytes = vec![0; size as usize];
        source.file.read_exact_at(&mut bytes, offset.0).unwrap();
        whole.push((Svma(address), bytes));
    }
    assert_eq!(source.of_calls().unwrap(), Table::of_calls(&source.module, &mut whole[..]).unwrap());
}

#[test]
fn a_description_adds_up() {
    let described = own().describe().unwrap();
    assert!(described.of_calls.rows < described.by_length.rows, "{described:?}");
    assert!(described.by_length.rows < described.rows + described.functions, "{described:?}");
    assert!(described.odd.values().sum::<usize>() <= described.rows);
    assert!(described.functions > 100 && described.frame_bytes > 10_000, "{described:?}");
}

#[test]
fn files_without_tables_say_why() {
    let said = |path: &str| Source::open(Path::new(path)).and_then(|source| source.describe()).unwrap_err();
    assert!(matches!(said("/nonexistent"), NoTable::File(_)));
    assert!(matches!(said("/"), NoTable::File(_)));
    assert!(matches!(said("/etc/passwd"), NoTable::Elf(ElfError::NotElf)));
}

/// Builds a library for another architecture; `None` with a notice if the compiler is missing.
fn cross(gcc: &str) -> Option<std::path::PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tmp/cross-tables");
    std::fs::create_dir_all(&folder).unwrap();
    let (source, library) = (folder.join(format!("{gcc}.c")), folder.join(format!("{gcc}.so")));
    let text = "int g(int); int f(int n) { int a[9]; for (int i = 0; i < 9; i++) a[i] = g(n + i); return a[n % 9] + g(n); }\n\
        int h(int n) { return f(n) + f(n + 1) * g(n); }\n";
    std::fs::write(&source, text).unwrap();
    let mut command = std::process::Command::new(gcc);
    command
        .args(["-O2", "-shared", "-fPIC", "-funwind-tables", "-nostdlib", "-o"])
        .arg(&library)
        .arg(&source);
    let requirement = if gcc == "gcc" || gcc == "cc" { Requirement::Cc } else { Requirement::Cross };
    if !needs_command(requirement, gcc) {
        return None;
    }
    assert!(command.status().is_ok_and(|status| status.success()));
    Some(library)
}

/// Counts the lines of readelf's output for a file for which `begins` holds.
fn readelf(option: &str, file: &Path, begins: impl Fn(&str) -> bool) -> usize {
    let output = std::process::Command::new("readelf").arg(option).arg(file).output().unwrap();
    String::from_utf8_lossy(&output.stdout).lines().filter(|line| begins(line)).count()
}

#[test]
fn files_of_other_architectures_have_tables() {
    if let Some(library) = cross("aarch64-linux-gnu-gcc") {
        let described = Source::open(&library).unwrap().describe().unwrap();
        let functions = readelf("--debug-dump=frames", &library, |line| line.contains(" FDE "));
        assert_eq!((described.functions, described.odd.len()), (functions, 0), "{described:?}");
        assert!(functions >= 2 && described.of_calls.rows < described.rows, "{described:?}");
    }
    if let Some(library) = cross("arm-linux-gnueabihf-gcc") {
        let described = Source::open(&library).unwrap().describe().unwrap();
        // One line per entry: the address of the function, then the instructions.
        let entries = readelf("--unwind", &library, |line| line.starts_with("0x") && line.contains(": "));
        assert_eq!((described.frame_bytes, described.functions), (8 * entries, entries), "{described:?}");
        assert!(described.rows >= 2 && described.of_calls.rows >= 2, "{described:?}");
    }
}
