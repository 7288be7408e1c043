//! Functions, inlined calls and lines of addresses in one file, by plumb and by `addr2line`.

use std::collections::HashMap;
use std::hint::black_box;
use std::path::Path;

use addr2line::Loader;
use plumb_profile::{Address, AddressSpace, Dso, DsoKind, Found, Frame, FrameKind, Profile};
use plumb_symbolize::{Options, Session};

use crate::Outcome;

fn addresses(list: &str) -> Result<Vec<u64>, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string(list)?;
    text.lines().map(|line| Ok(u64::from_str_radix(line.trim().trim_start_matches("0x"), 16)?)).collect()
}

/// As a recording has it done, which leaves names mangled.
pub fn plumb(file: &str, list: &str) -> Outcome {
    let file = Path::new(file).canonicalize()?;
    let mut profile = Profile::default();
    let path = profile.strings.add(&file.to_string_lossy());
    let dso = Dso { path, build_id: None, kind: DsoKind::File, addresses: AddressSpace::Svma };
    let dso = profile.dsos.add(dso);
    for address in addresses(list)? {
        let (kind, found) = (FrameKind::User, Found::Sampled);
        let frame = Frame { kind, dso: Some(dso), address: Address(address), is_return: false, found };
        profile.frames.add(frame);
    }
    let mut session = Session::begin(Options::default());
    session.close(&profile, HashMap::new());
    let summary = session.finish(&mut profile, &mut |_| {});
    let lined: usize = summary.dsos.iter().map(|dso| dso.lined).sum();
    let mut calls = 0;
    for (id, _) in profile.frames.iter() {
        calls += profile.symbols.of(id).len();
    }
    println!("{lined} with lines, {calls} functions");
    Ok(())
}

/// By `addr2line` alone; names are not demangled, as by plumb.
pub fn addr2line(file: &str, list: &str) -> Outcome {
    let loader = Loader::new(file).map_err(|error| error.to_string())?;
    let (mut lined, mut calls) = (0, 0);
    for address in addresses(list)? {
        let mut has_line = false;
        let mut frames = loader.find_frames(address).map_err(|error| error.to_string())?;
        while let Some(frame) = frames.next()? {
            calls += 1;
            has_line |= frame.location.as_ref().is_some_and(|location| location.line.is_some());
            black_box(frame.function.as_ref().map(|function| function.raw_name().map(|name| name.len())));
        }
        if calls == 0 {
            black_box(loader.find_symbol(address));
        }
        lined += usize::from(has_line);
    }
    println!("{lined} with lines, {calls} functions");
    Ok(())
}
