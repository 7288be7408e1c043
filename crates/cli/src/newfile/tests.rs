//! Directory contents after a file was written, or writing failed.

use std::os::unix::fs::symlink;
use std::process::Command;

use plumb_fixtures::{Requirement, skip};

use super::*;

/// An empty directory.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("plumb-newfile-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("there is room for tests");
    folder
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("it is there").flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into()).collect();
    names.sort();
    names
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).expect("it can be read")
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").mode() & 0o7777
}

#[test]
fn what_is_not_committed_leaves_what_was_there() {
    let folder = folder("uncommitted");
    let path = folder.join("page.html");
    fs::write(&path, "old").expect("it is written");
    let mut file = NewFile::at(&path).expect("it can be written");
    file.write_all(b"half a p").expect("there is room");
    assert_eq!(text(&path), "old");
    drop(file);
    assert_eq!((text(&path).as_str(), names(&folder)), ("old", vec!["page.html".to_owned()]));
    write(&path, b"new").expect("it can be written");
    assert_eq!((text(&path).as_str(), names(&folder)), ("new", vec!["page.html".to_owned()]));
    let _ = fs::remove_dir_all(folder);
}

/// A command killed while writing leaves no partial file.
#[test]
fn what_is_being_written_has_no_name() {
    let folder = folder("nameless");
    let mut file = NewFile::at(&folder.join("page.html")).expect("it can be written");
    file.write_all(b"half a p").expect("there is room");
    if File::options().write(true).custom_flags(OFlags::TMPFILE.bits() as i32).open(&folder).is_ok() {
        assert!(names(&folder).is_empty());
    } else {
        skip(Requirement::Files, format_args!("{}: it has no files without a name", folder.display()));
    }
    file.write_all(b"age").expect("there is room");
    file.commit().expect("it can be renamed");
    assert_eq!(text(&folder.join("page.html")), "half a page");
    assert_eq!(names(&folder), ["page.html"]);
    let _ = fs::remove_dir_all(folder);
}

#[test]
fn modes_are_the_old_files_or_the_umasks() {
    let folder = folder("modes");
    let [path, usual, private] = ["old", "usual", "private"].map(|name| folder.join(name));
    fs::write(&path, "old").expect("it is written");
    fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("it is ours");
    write(&path, b"new").expect("it can be written");
    assert_eq!(mode(&path), 0o640);
    // The umask applies as for any other file.
    File::create(folder.join("any")).expect("it can be made");
    write(&usual, b"new").expect("it can be written");
    assert_eq!(mode(&usual), mode(&folder.join("any")));
    for _ in 0..2 {
        NewFile::beside(&private, Access::Private).and_then(NewFile::commit).expect("it can be written");
        assert_eq!(mode(&private), 0o600);
        fs::set_permissions(&private, Permissions::from_mode(0o644)).expect("it is ours");
    }
    let _ = fs::remove_dir_all(folder);
}

#[test]
fn links_stay_and_what_they_lead_to_is_replaced() {
    let folder = folder("links");
    fs::create_dir(folder.join("real")).expect("a folder");
    let [real, link, other, dangling] =
        ["real/file", "link", "other", "dangling"].map(|name| folder.join(name));
    fs::write(&real, "old").expect("it is written");
    symlink("real/file", &link).expect("a link");
    symlink("link", &other).expect("a link");
    symlink("real/new", &dangling).expect("a link");
    for path in [&other, &dangling] {
        write(path, b"new").expect("it can be written");
        assert!(fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink()), "{path:?}");
        assert_eq!(text(path), "new");
    }
    assert_eq!(names(&folder.join("real")), ["file", "new"]);
    symlink("round", folder.join("round")).expect("a link");
    assert!(write(&folder.join("round"), b"new").is_err(), "it leads nowhere");
    let _ = fs::remove_dir_all(folder);
}

#[test]
fn directories_are_refused_and_stay() {
    let folder = folder("directories");
    fs::create_dir(folder.join("kept")).expect("a folder");
    symlink("kept", folder.join("link")).expect("a link");
    for name in ["kept", "kept/", "link", "new/", ".", "kept/.."] {
        let refused = write(&folder.join(name), b"new").expect_err("it is a directory");
        assert!(refused.to_string().contains("is a directory; name a file in it"), "{name}: {refused}");
    }
    assert!(write(&folder.join("missing/file"), b"new").is_err());
    assert_eq!(names(&folder), ["kept", "link"]);
    let _ = fs::remove_dir_all(folder);
}

#[test]
fn devices_pipes_and_descriptors_are_written_as_they_are() {
    assert_eq!(Destination::of(Path::new("-")).ok(), Some(Destination::Stdout));
    for stdout in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        assert_eq!(Destination::of(Path::new(stdout)).ok(), Some(Destination::Stdout), "{stdout}");
    }
    write(Path::new("/dev/null"), b"new").expect("it takes all");
    let full = write(Path::new("/dev/full"), b"new").expect_err("it takes nothing");
    assert!(format!("{full:#}").contains("No space left"), "{full:#}");
    for device in ["/dev/null", "/dev/full"] {
        let kind = fs::symlink_metadata(device).expect("it is there").file_type();
        assert!(!kind.is_file() && !kind.is_symlink(), "{device} is what it was");
    }
    let folder = folder("streams");
    // An open file given by descriptor is appended to, not replaced.
    let path = folder.join("open");
    fs::write(&path, "head ").expect("it is written");
    let open = File::open(&path).expect("it is there");
    let number = std::os::fd::AsRawFd::as_raw_fd(&open);
    write(Path::new(&format!("/dev/fd/{number}")), b"new").expect("it can be written");
    assert_eq!((text(&path).as_str(), names(&folder)), ("head new", vec!["open".to_owned()]));

    let pipe = folder.join("pipe");
    if !Command::new("mkfifo").arg(&pipe).status().is_ok_and(|status| status.success()) {
        skip(Requirement::Tools, "no mkfifo");
        return;
    }
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || text(&pipe)
    });
    write(&pipe, b"new").expect("it is read");
    assert_eq!(reader.join().expect("it reads"), "new");
    assert_eq!(names(&folder), ["open", "pipe"]);
    let _ = fs::remove_dir_all(folder);
}

#[test]
fn a_long_name_has_room_beside_it() {
    let folder = folder("long");
    let path = folder.join("n".repeat(255));
    write(&path, b"new").expect("it can be written");
    write(&path, b"newer").expect("it can be written");
    assert_eq!((text(&path).as_str(), names(&folder).len()), ("newer", 1));
    let _ = fs::remove_dir_all(folder);
}

#[test]
fn a_file_that_may_not_be_written_is_not_replaced() {
    let folder = folder("read-only");
    let path = folder.join("file");
    fs::write(&path, "old").expect("it is written");
    fs::set_permissions(&path, Permissions::from_mode(0o444)).expect("it is ours");
    if OpenOptions::new().write(true).open(&path).is_ok() {
        skip(Requirement::Unprivileged, "root may write everything");
    } else {
        assert!(write(&path, b"new").is_err());
        assert_eq!(text(&path), "old");
    }
    let _ = fs::remove_dir_all(folder);
}
