//! Compares [`super`] with the offsets that a C compiler finds in each version's headers.

use std::path::{Path, PathBuf};
use std::process::Command;

use plumb_fixtures::{Requirement, skip};

use super::*;
use crate::image::Image;

const PROGRAM: &str = include_str!("layout_tests.c");

/// Directory of the headers of a version: Debian's, or pyenv's.
fn headers(minor: u8) -> Option<PathBuf> {
    let name = format!("python3.{minor}");
    let mut folders = vec![Path::new("/usr/include").join(&name)];
    let pyenv = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
    let pyenv = pyenv.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".pyenv")));
    for version in
        pyenv.and_then(|root| root.join("versions").read_dir().ok()).into_iter().flatten().flatten()
    {
        folders.push(version.path().join("include").join(&name));
    }
    folders.into_iter().find(|folder| {
        folder.join("internal/pycore_frame.h").exists() || folder.join("internal/pycore_pystate.h").exists()
    })
}

/// Offsets found by the compiler, with the directory of the headers. Without headers, reports that and returns `None`.
fn compiled(minor: u8) -> Option<(PathBuf, Vec<u64>)> {
    let Some(headers) = headers(minor) else {
        skip(Requirement::Python, format_args!("no headers of Python 3.{minor}"));
        return None;
    };
    let folder = std::env::temp_dir().join(format!("plumb-layout-{}-{minor}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (source, program) = (folder.join("offsets.c"), folder.join("offsets"));
    std::fs::write(&source, PROGRAM).unwrap();
    let mut gcc = Command::new("gcc");
    assert!(
        gcc.arg("-w")
            .arg("-I")
            .arg(&headers)
            .arg(&source)
            .arg("-o")
            .arg(&program)
            .status()
            .unwrap()
            .success()
    );
    let said = String::from_utf8(Command::new(&program).output().unwrap().stdout).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    Some((headers, said.split_whitespace().map(|number| number.parse().unwrap()).collect()))
}

fn ours(layout: &PythonLayout) -> Vec<u64> {
    let PythonLayout { runtime, interpreter, thread, chain, frame, code, object } = layout;
    let mut all = vec![runtime.interpreters, interpreter.next, interpreter.threads];
    all.extend([thread.next, thread.id, thread.frame]);
    all.extend([frame.code, frame.caller, frame.instruction]);
    all.extend([code.first_line, code.file, code.name, code.lines]);
    all.extend([object.size, object.bytes, object.length, object.state, object.ascii, object.wide]);
    match chain {
        Chain::Single => {}
        Chain::CFrames { frame: current, previous } => all.extend([*current, *previous, frame.is_entry]),
        Chain::EntryFrames { cframe } => all.extend(cframe),
    }
    if *chain != Chain::Single {
        all.extend([frame.owner, code.first_traceable, code.instructions]);
    }
    if runtime.current != 0 {
        all.push(runtime.current);
    }
    all.into_iter().map(u64::from).collect()
}

#[test]
fn offsets_are_those_of_the_headers() {
    for minor in 9..=12 {
        let Some((_, said)) = compiled(minor) else { continue };
        assert_eq!(said, ours(of(minor).unwrap()), "Python 3.{minor}");
    }
}

/// Compares the tables that the interpreters state in their own files.
#[test]
fn stated_offsets_are_those_of_the_headers() {
    for minor in 13..=15 {
        let Some((headers, said)) = compiled(minor) else { continue };
        let name = format!("libpython3.{minor}.so.1.0");
        let folders = [headers.join("../../lib"), PathBuf::from("/usr/lib/x86_64-linux-gnu")];
        let Some(file) = folders.iter().find_map(|folder| std::fs::File::open(folder.join(&name)).ok())
        else {
            skip(Requirement::Python, format_args!("no {name}"));
            continue;
        };
        let image = Image::read(&file, &[crate::python::LANGUAGE.symbols], true).expect("it has symbols");
        let layout =
            crate::python::version::of(&image).and_then(|version| version.layout).expect("it is known");
        assert_eq!(said, ours(&layout), "Python 3.{minor}");
    }
}
