//! What is inflated once is kept, and kept only as long as it is whole.

#![allow(clippy::unwrap_used)] // A test that can go no further fails.

mod truth;

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use plumb_symbolize::Options;
use truth::{Folder, build_id, have, options};

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
    assert_eq!(found(&with_cache), expected);
    let entries = kept();
    assert!(!entries.is_empty(), "nothing was kept");
    assert_eq!(found(&with_cache), expected);
    for path in &entries {
        let mut bytes = fs::read(path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0xff;
        fs::write(path, bytes).unwrap();
    }
    assert_eq!(found(&with_cache), expected);
}
