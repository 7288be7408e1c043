//! Stored entries come back; damaged, foreign or evicted ones do not.

use std::time::Duration;

use super::*;

/// An empty directory for a test, removed at its end.
struct Cache(PathBuf);

impl Cache {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("plumb-kept-{}-{name}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&path).unwrap();
        Self(path)
    }

    fn open(&self) -> DiskCache {
        DiskCache::open_in(&self.0, "things", 3, 1 << 20)
    }

    fn entry(&self, hex: &str) -> PathBuf {
        self.0.join("plumb/things").join(hex)
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn what_was_kept_is_there_in_the_next_run_and_for_nobody_else() {
    let cache = Cache::new("next");
    assert_eq!(cache.open().get(b"key"), None);
    cache.open().put(b"key", b"content");
    cache.open().put(b"empty", b"");
    assert_eq!(cache.open().get(b"key").as_deref(), Some(&b"content"[..]));
    assert_eq!(cache.open().get(b"empty").as_deref(), Some(&b""[..]));
    assert_eq!(cache.open().get(b"kez"), None);
    cache.open().put(b"key", b"newer");
    assert_eq!(cache.open().get(b"key").as_deref(), Some(&b"newer"[..]));
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&cache.entry("6b6579")), 0o600);
    assert_eq!(mode(&cache.0.join("plumb/things")), 0o700);
    assert_eq!(mode(&cache.0.join("plumb")), 0o700);
    assert_eq!(fs::read_dir(cache.0.join("plumb/things")).unwrap().count(), 2, "no temporary file is left");
}

#[test]
fn another_version_and_another_kind_have_their_own() {
    let cache = Cache::new("version");
    cache.open().put(b"key", b"content");
    assert_eq!(DiskCache::open_in(&cache.0, "things", 4, 1 << 20).get(b"key"), None);
    assert_eq!(DiskCache::open_in(&cache.0, "others", 3, 1 << 20).get(b"key"), None);
}

#[test]
fn damage_of_any_byte_and_any_length_is_not_kept() {
    let cache = Cache::new("damage");
    let kept = cache.open();
    kept.put(b"key", b"content");
    let path = cache.entry("6b6579");
    let whole = fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        fs::write(&path, &bytes).unwrap();
        assert_eq!(kept.get(b"key"), None, "byte {at}");
        fs::write(&path, &whole[..at]).unwrap();
        assert_eq!(kept.get(b"key"), None, "{at} bytes");
    }
    fs::write(&path, &whole).unwrap();
    assert!(kept.get(b"key").is_some());
    fs::write(&path, [&whole[..], b"x"].concat()).unwrap();
    assert_eq!(kept.get(b"key"), None);
}

#[test]
fn a_part_is_what_is_there_and_only_its_own_damage_matters() {
    let cache = Cache::new("part");
    let kept = cache.open();
    let content: Vec<u8> = (0..200_000_u32).map(|at| (at % 251) as u8).collect();
    kept.put(b"key", &content);
    let entry = kept.entry(b"key").unwrap();
    assert_eq!(entry.size(), 200_000);
    for range in [0..1, 0..200_000, 65_535..65_537, 65_536..131_072, 131_071..199_999, 7..7, 200_000..200_000]
    {
        let expected = &content[range.start as usize..range.end as usize];
        assert_eq!(entry.read(range.clone()).as_deref(), Some(expected), "{range:?}");
    }
    for range in [0..200_001, 200_000..200_001, 1 << 40..(1 << 40) + 1, 0..u64::MAX] {
        assert_eq!(entry.read(range.clone()), None, "{range:?}");
    }
    let path = cache.entry("6b6579");
    let mut bytes = fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&path, bytes).unwrap();
    assert_eq!(entry.read(100..200).as_deref(), Some(&content[100..200]));
    assert_eq!(entry.read(199_000..199_001), None);
    assert_eq!(kept.get(b"key"), None);
}

#[test]
fn what_was_not_used_for_longest_goes_first() {
    let cache = Cache::new("limit");
    let kept = DiskCache::open_in(&cache.0, "things", 3, 4096);
    let content = [7; 1000];
    for key in [b"a", b"b", b"c"] {
        kept.put(key, &content);
    }
    let age = |hex, seconds| {
        let file = File::options().write(true).open(cache.entry(hex)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
    };
    for (hex, seconds) in [("61", 30), ("62", 20), ("63", 10)] {
        age(hex, seconds);
    }
    assert!(kept.get(b"a").is_some());
    kept.put(b"d", &content);
    assert_eq!([b"a", b"b", b"c", b"d"].map(|key| kept.get(key).is_some()), [true, false, true, true]);
    // An entry larger than the limit is not stored, and evicts nothing.
    kept.put(b"e", &[7; 5000]);
    assert_eq!([b"a", b"c", b"d", b"e"].map(|key| kept.get(key).is_some()), [true, true, true, false]);
}

#[test]
fn a_folder_that_others_may_write_to_is_not_used() {
    let cache = Cache::new("foreign");
    cache.open().put(b"key", b"content");
    fs::set_permissions(cache.0.join("plumb/things"), std::os::unix::fs::PermissionsExt::from_mode(0o777))
        .unwrap();
    assert_eq!(cache.open().get(b"key"), None);
    cache.open().put(b"other", b"content");
    assert!(!cache.entry("6f74686572").exists());
}

#[test]
fn what_cannot_be_kept_is_no_error() {
    let cache = Cache::new("nowhere");
    fs::write(cache.0.join("plumb"), "not a folder").unwrap();
    for kept in [cache.open(), DiskCache::nowhere()] {
        kept.put(b"key", b"content");
        assert_eq!(kept.get(b"key"), None);
    }
    let kept = cache.open();
    kept.put(&[1; MAX_KEY + 1], b"content");
    kept.put(b"", b"content");
    assert_eq!((kept.get(&[1; MAX_KEY + 1]), kept.get(b"")), (None, None));
}
