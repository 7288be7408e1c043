//! Tests of [`super`]: on the program that runs them.

use super::*;

fn own() -> Source {
    Source::open(Path::new("/proc/self/exe")).unwrap()
}

#[test]
fn a_table_is_kept_and_found_by_its_build_id() {
    let cache = std::env::temp_dir().join(format!("plumb-tables-{}", std::process::id()));
    std::fs::create_dir_all(&cache).unwrap();
    let kept = KeptTables::open_in(&cache);
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
