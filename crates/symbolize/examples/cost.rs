//! Measures the cost of symbolization: `cost FILE ADDRESSES` looks up the addresses (hexadecimal, one per line) in an ELF file and
//! prints the CPU time, what was found, and with `--dump` each address' lines.

use std::path::Path;

use plumb_profile::{Address, AddressSpace, Dso, DsoKind, Found, Frame, FrameKind, Profile};
use plumb_symbolize::{Options, symbolize};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(file), Some(list)) = (arguments.next(), arguments.next()) else {
        return Err("usage: cost FILE ADDRESSES [--dump|--names]".into());
    };
    let mode = arguments.next().unwrap_or_default();
    let file = Path::new(&file).canonicalize()?;
    let mut profile = Profile::default();
    let path = profile.strings.add(&file.to_string_lossy());
    let addresses = AddressSpace::Svma;
    let dso = profile.dsos.add(Dso { path, build_id: None, kind: DsoKind::File, addresses });
    for line in std::fs::read_to_string(list)?.lines() {
        let address = u64::from_str_radix(line.trim().trim_start_matches("0x"), 16)?;
        let kind = FrameKind::User;
        let frame = Frame {
            kind,
            dso: Some(dso),
            address: Address(address),
            is_return: false,
            found: Found::Sampled,
        };
        profile.frames.add(frame);
    }
    let options = Options { lines: mode != "--names", ..Options::default() };
    let summary = symbolize(&mut profile, &options, &mut |_| {});
    for dso in &summary.dsos {
        let (frames, named, lined, inlined) = (dso.frames, dso.named, dso.lined, dso.inlined);
        eprintln!(
            "{frames} addresses: {named} named, {lined} with lines, {inlined} inlined; {} symbols; {:.1} ms",
            dso.functions,
            dso.seconds * 1e3
        );
        dso.missing.iter().for_each(|missing| eprintln!("  {missing}"));
    }
    if mode == "--dump" {
        for (id, frame) in profile.frames.iter() {
            println!("{:#x}", frame.address.0);
            for line in profile.symbols.of(id) {
                let function = &profile.symbols.functions[line.function];
                let text = |id| profile.strings.get(id);
                println!("{}\n{}:{}", text(function.linkage_name), text(line.file), line.line);
            }
        }
    }
    Ok(())
}
