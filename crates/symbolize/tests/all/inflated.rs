//! Decompressed sections are cached, and used only while the cached data is intact.

#![allow(clippy::unwrap_used)] // A test that can go no further fails.

use crate::truth;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use crate::truth::{Folder, build_id, have, options, run};
use plumb_symbolize::Options;

/// Age from which a file counts as unchanging.
const SETTLED: Duration = Duration::from_millis(2100);

#[test]
fn kept_sections_give_the_same_names_and_damaged_ones_are_inflated_anew() {
    if !have(&["g++", "readelf"]) {
        return;
    }
    let folder = Folder::new("inflated");
    let file = truth::build(&folder, "program", &["-O2", "-g", "-gz=zlib"]);
    let addresses: Vec<u64> = truth::text(&file).into_iter().step_by(3).collect();
    let cache = folder.join("cache");
    fs::DirBuilder::new().mode(0o700).create(&cache).unwrap();
    let with_cache = Options { cache: Some(cache.clone()), ..options(&folder) };
    let found = |options: &Options| {
        let (mut profile, _) = truth::profile(&file, build_id(&file), &addresses);
        truth::resolve(&mut profile, options).0
    };
    let kept = || -> Vec<PathBuf> {
        let folder = cache.join("plumb/sections");
        fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
    };
    let expected = found(&options(&folder));
    assert!(expected.values().any(|chain| chain.len() > 2));
    // A file modified just now may be modified again without a new timestamp.
    assert_eq!(found(&with_cache), expected);
    assert_eq!(kept(), Vec::<PathBuf>::new());
    sleep(SETTLED);
    assert_eq!(found(&with_cache), expected);
    let entries = kept();
    assert!(!entries.is_empty(), "nothing was kept");
    assert_eq!(found(&with_cache), expected);
    let functions: Vec<_> = truth::functions_called(&file, &["main"]);
    let main = |options: &Options| truth::resolve_code(&file, options, &functions);
    let expected_main = main(&options(&folder));
    assert!(expected_main.values().any(|chain| chain.len() > 2));
    assert_eq!(main(&with_cache), expected_main);
    for path in &entries {
        let mut bytes = fs::read(path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0xff;
        fs::write(path, bytes).unwrap();
    }
    assert_eq!(found(&with_cache), expected);
    assert_eq!(main(&with_cache), expected_main);
}

#[test]
fn another_file_in_its_place_is_inflated_anew() {
    if !have(&["gcc", "readelf", "nm"]) {
        return;
    }
    let folder = Folder::new("inflated-anew");
    let cache = folder.join("cache");
    fs::DirBuilder::new().mode(0o700).create(&cache).unwrap();
    let kept = cache.join("plumb/sections");
    let with_cache = Options { cache: Some(cache), ..options(&folder) };
    for name in ["f0", "f1"] {
        let inline = "static inline __attribute__((always_inline)) int";
        let main = format!(
            "{inline} {name}(int a) {{ return a + 3; }}\nint main(int a, char **b) {{ return {name}(a); }}\n"
        );
        // ... with enough entries to be cached.
        let more: String = (0..4000).map(|n| format!("struct S{n} {{ int a{n}; }} s{n};\n")).collect();
        let (path, file) = (folder.join("source.c"), folder.join("program"));
        fs::write(&path, main + &more).unwrap();
        let flags = ["-g", "-gz=zlib", "-Wl,--build-id=none", "-o"];
        run("gcc", &[&flags[..], &[file.to_str().unwrap(), path.to_str().unwrap()]].concat());
        sleep(SETTLED);
        let main = truth::functions_called(&file, &["main"]);
        for _ in 0..2 {
            let found = truth::resolve_code(&file, &with_cache, &main);
            assert!(found.values().any(|chain| chain[0].0 == name && chain.len() == 2), "{found:?}");
        }
        assert!(fs::read_dir(&kept).unwrap().count() > 0, "nothing was kept");
    }
}
