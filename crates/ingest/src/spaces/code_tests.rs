//! Tests of [`super`]: when files get tables.

use std::time::{Duration, Instant};

use plumb_process::RecordedFiles;
use plumb_table_cache::{Source, TableCache};

use super::*;

/// The program that runs this, as it is mapped.
fn own(code: &mut Code) -> (Vma, FileId) {
    let path = std::env::current_exe().unwrap();
    let key = FileKey::of_path(path.as_os_str().as_encoded_bytes());
    let id = code.add(key, &FileOrigin::Recorded(RecordedFiles::default()));
    let (address, offset, size) = code.with_elf(id, |elf| elf.code().next()).flatten().expect("it has code");
    let mapping = Vma { start: address, end: address + size, offset, backing: Backing::File(id) };
    (mapping, id)
}

fn wait_for_table(code: &mut Code, id: FileId, limit: Duration) -> bool {
    let until = Instant::now() + limit;
    while Instant::now() < until {
        code.look_at_tables();
        if code.module(id).expect("it has rules").table().is_some() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

#[test]
fn a_file_in_which_much_is_looked_up_gets_its_table() {
    let cache = std::env::temp_dir().join(format!("plumb-code-{}", std::process::id()));
    std::fs::create_dir_all(&cache).unwrap();
    let mut code = Code::default();
    code.use_tables(TableLoader::new(TableCache::open_in(&cache)));
    let (mapping, id) = own(&mut code);
    let few = Lookups::LEAST as u64 - 1;
    (0..few).for_each(|at| {
        assert!(matches!(code.located(&mapping, Avma(mapping.start + at)), Located::Module { .. }))
    });
    assert!(!wait_for_table(&mut code, id, Duration::from_millis(50)), "few look-ups are not worth a table");
    let bytes = code.module(id).unwrap().sections().eh_frame.as_ref().unwrap().bytes.len();
    let many = (bytes / Lookups::BYTES) as u64;
    (0..=many).for_each(|at| {
        assert!(matches!(code.located(&mapping, Avma(mapping.start + at)), Located::Module { .. }))
    });
    assert!(wait_for_table(&mut code, id, Duration::from_secs(120)));
    let made = Source::open(&std::env::current_exe().unwrap()).unwrap().of_calls().unwrap();
    let table = code.module(id).unwrap().table().cloned().map(|table| table.with_build_id(b""));
    assert_eq!(table, Some(made.with_build_id(b"")));
    let build_id = code.with_elf(id, |elf| elf.build_id.clone()).flatten().expect("linkers make one");
    assert!(TableCache::open_in(&cache).get(&build_id).is_some(), "it is kept for the next recording");
    std::fs::remove_dir_all(&cache).unwrap();
}

#[test]
fn files_that_nobody_has_mapped_are_closed_until_they_are_mapped_again() {
    let mut code = Code::default();
    let (mapping, id) = own(&mut code);
    let is_open = |code: &Code| code.files.borrow().get(id).open_file().is_some();
    let has_rules =
        |code: &Code| matches!(code.located(&mapping, Avma(mapping.start)), Located::Module { .. });
    let (nobody, somebody) = (FxHashSet::default(), FxHashSet::from_iter([id]));
    assert!(!code.is_closing_due(), "there are few");
    assert!(has_rules(&code));
    code.close_all_but(&nobody);
    assert!(is_open(&code), "it was mapped just now");
    code.close_all_but(&somebody);
    assert!(is_open(&code), "it is mapped");
    code.close_all_but(&nobody);
    assert!(!is_open(&code) && code.known[id.index()].module.get().is_none(), "nothing is kept of it");
    assert!(has_rules(&code), "its path leads to it");
    assert_eq!(own(&mut code).1, id);
    assert!(is_open(&code) && has_rules(&code));
}

#[test]
fn unwind_information_that_is_not_asked_for_makes_room_and_is_read_again() {
    let mut code = Code::default();
    let (mapping, id) = own(&mut code);
    let is_loaded = |code: &Code| code.known[id.index()].module.get().is_some();
    let found = |code: &Code| match code.located(&mapping, Avma(mapping.start)) {
        Located::Module { module, .. } => {
            module.sections().eh_frame.as_ref().map(|section| section.bytes.clone())
        }
        _ => None,
    };
    let first = found(&code).expect("it has rules");
    code.bound(0);
    assert!(is_loaded(&code), "it was asked for just now");
    code.bound(first.len() * 100);
    code.bound(first.len() * 100);
    assert!(is_loaded(&code), "there is room");
    code.bound(first.len() - 1);
    assert!(!is_loaded(&code), "nobody asked since the last time");
    assert!(found(&code) == Some(first), "the same as before");
}

#[test]
fn what_is_in_use_makes_room_where_there_is_far_too_much_but_not_again_and_again() {
    let mut code = Code::default();
    let (mapping, id) = own(&mut code);
    let is_loaded = |code: &Code| code.known[id.index()].module.get().is_some();
    let ask =
        |code: &Code| assert!(matches!(code.located(&mapping, Avma(mapping.start)), Located::Module { .. }));
    ask(&code);
    let bytes = code.room.loaded.get();
    assert!(bytes > 0);
    let make_room_twice = |code: &mut Code| {
        code.make_room();
        code.make_room();
    };
    make_room_twice(&mut code);
    assert!(is_loaded(&code), "no bound was told");
    code.bound_sometimes(bytes / 2 + 1);
    ask(&code);
    make_room_twice(&mut code);
    assert!(is_loaded(&code), "it is not far too much");
    code.room.most = bytes / 2 - 1;
    // As often as may be within such a time.
    for _ in 0..Room::EARLY {
        ask(&code);
        code.make_room();
        if code.room.is_short() {
            assert!(is_loaded(&code), "it was asked for just now");
        }
        code.make_room();
    }
    ask(&code);
    make_room_twice(&mut code);
    assert!(is_loaded(&code), "it is not read again all the time");
    assert!(code.room.early >= code.room.most * (Room::EARLY - 1));
}
