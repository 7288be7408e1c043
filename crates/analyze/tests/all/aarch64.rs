//! A64 code: text and targets against those of GNU objdump, over whole libraries of the cross compiler; classes; bytes that are not code.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use plumb_analyze::{InstructionKind, Listing};
use plumb_fixtures::{Requirement, skip};
use plumb_profile::{Address, InstructionSet};

/// Library directory of Debian's cross compilers.
const LIBRARIES: &str = "/usr/aarch64-linux-gnu/lib";
const FILES: [&str; 5] =
    ["libc.so.6", "libm.so.6", "ld-linux-aarch64.so.1", "libgcc_s.so.1", "libstdc++.so.6"];

fn listing(words: &[u32]) -> Listing {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    Listing::decode(Address(0x1000), &bytes, InstructionSet::Aarch64)
}

fn texts(words: &[u32]) -> Vec<String> {
    listing(words).texts(&BTreeMap::new())
}

/// An instruction as objdump has it.
struct Theirs {
    address: u64,
    word: u32,
    text: String,
}

/// Returns the instructions of a file; `None` without objdump.
fn disassembled(file: &Path) -> Option<Vec<Theirs>> {
    let output = Command::new("aarch64-linux-gnu-objdump").arg("-d").arg(file).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let row = |line: &str| {
        let (address, rest) = line.split_once(":\t")?;
        let (word, text) = rest.split_once('\t')?;
        let address = u64::from_str_radix(address.trim(), 16).ok()?;
        Some(Theirs { address, word: u32::from_str_radix(word.trim(), 16).ok()?, text: text.to_owned() })
    };
    Some(text.lines().filter_map(row).collect())
}

/// Writes an instruction so that only its meaning counts: without comments and names, with one space, numbers in decimal.
fn normal(text: &str) -> String {
    let text = text.split("//").next().unwrap_or_default();
    let text = text.split('<').next().unwrap_or_default().to_lowercase();
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ").replace(", ", ",");
    let is_address = has_address(&text);
    let parts: Vec<&str> = text.split_inclusive([',', ' ', '[', ']']).collect();
    let last = parts.len().saturating_sub(1);
    parts.iter().enumerate().map(|(at, part)| number(part, is_address && at == last)).collect()
}

/// Whether the last operand is an address, which objdump writes without a prefix.
fn has_address(text: &str) -> bool {
    let mnemonic = text.split(' ').next().unwrap_or_default();
    matches!(mnemonic, "b" | "bl" | "adr" | "adrp" | "cbz" | "cbnz" | "tbz" | "tbnz")
        || mnemonic.starts_with("b.")
        || mnemonic.starts_with("ldr") && !text.contains('[')
}

/// Writes a number in decimal, with what surrounds it.
fn number(part: &str, is_address: bool) -> String {
    let (hash, rest) = part.split_at(usize::from(part.starts_with('#')));
    let (body, tail) = rest.split_at(rest.trim_end_matches([',', ' ', '[', ']', '!']).len());
    let hex = |digits: &str| u64::from_str_radix(digits, 16).ok().map(|value| value.to_string());
    let plain = match body.strip_prefix("0x") {
        Some(digits) => hex(digits),
        None if is_address => hex(body),
        None if hash == "#" && body.contains('.') => body.parse::<f64>().ok().map(|value| value.to_string()),
        None => None,
    };
    format!("{hash}{}{tail}", plain.unwrap_or_else(|| body.to_owned()))
}

/// Texts that differ: how many by mnemonic, and the first.
type Differences = BTreeMap<String, (usize, String)>;

/// Compares all instructions of a file, and returns their number; `None` without objdump.
fn compare(file: &Path, differences: &mut Differences) -> Option<usize> {
    let theirs = disassembled(file)?;
    for rows in theirs.chunk_by(|one, next| next.address == one.address + 4) {
        let bytes: Vec<u8> = rows.iter().flat_map(|one| one.word.to_le_bytes()).collect();
        let listing = Listing::decode(Address(rows[0].address), &bytes, InstructionSet::Aarch64);
        let texts = listing.texts(&BTreeMap::new());
        assert_eq!(texts.len(), rows.len());
        for ((ours, row), instruction) in texts.iter().zip(rows).zip(listing.instructions()) {
            let theirs = if row.text.contains("undefined") { "(bad)".to_owned() } else { normal(&row.text) };
            // Operands of scalable vectors are not formatted.
            let is_short = ours.strip_suffix('…').is_some_and(|ours| theirs.starts_with(ours));
            if normal(ours) != theirs && !is_short {
                let mnemonic = theirs.split(' ').next().unwrap_or_default().to_owned();
                let first = || (0, format!("{:08x}: {theirs}, here {}", row.word, normal(ours)));
                differences.entry(mnemonic).or_insert_with(first).0 += 1;
            }
            let is_direct = has_address(&theirs) && !theirs.starts_with("adrp");
            let target = theirs.rsplit([',', ' ']).next().and_then(|target| target.parse().ok());
            if let Some(target) = target.filter(|_| is_direct) {
                assert_eq!(instruction.target, Some(Address(target)), "{:#x}: {theirs}", row.address);
            }
        }
    }
    Some(theirs.len())
}

#[test]
fn text_and_targets_are_those_of_objdump() {
    for name in FILES {
        let file = Path::new(LIBRARIES).join(name);
        let mut differences = Differences::new();
        let count = if file.exists() { compare(&file, &mut differences) } else { None };
        let Some(count) = count else {
            skip(
                Requirement::Cross,
                format_args!("{} or objdump for it is not on this machine", file.display()),
            );
            return;
        };
        println!("{name}: {count} instructions");
        assert!(count > 1000, "{name}: {count}");
        assert!(differences.is_empty(), "{name}: {differences:#?}");
    }
}

#[test]
fn instructions_have_classes() {
    let classes: &[(u32, &[&str])] = &[
        (0x9ac2_0820, &["division"]),                             // udiv x0, x1, x2
        (0x6e22_fc20, &["division", "128-bit"]),                  // fdiv v0.4s, v1.4s, v2.4s
        (0x1e62_1820, &["division"]),                             // fdiv d0, d1, d2
        (0x1e61_c020, &["square-root"]),                          // fsqrt d0, d1
        (0x6ea1_d820, &["128-bit"]),                              // frsqrte v0.4s, v1.4s
        (0x885f_fc20, &["lock"]),                                 // ldaxr w0, [x1]
        (0x8802_fc20, &["lock"]),                                 // stlxr w2, w0, [x1]
        (0xf820_0041, &["lock"]),                                 // ldadd x0, x1, [x2]
        (0xc8e0_fc41, &["lock"]),                                 // casal x0, x1, [x2]
        (0xb820_83e1, &["lock", "stack-slot"]),                   // swp w0, w1, [sp]
        (0xc8df_fc20, &["load"]),                                 // ldar x0, [x1]
        (0x889f_fc20, &["store"]),                                // stlr w0, [x1]
        (0xd503_3bbf, &["fence"]),                                // dmb ish
        (0xd503_3fdf, &["fence"]),                                // isb
        (0xd503_203f, &["fence"]),                                // yield
        (0xd503_201f, &[]),                                       // nop
        (0xd400_0001, &["syscall"]),                              // svc #0
        (0x5400_0001, &["branch"]),                               // b.ne .
        (0xb400_0000, &["branch"]),                               // cbz x0, .
        (0x3718_0000, &["branch"]),                               // tbnz w0, #3, .
        (0x1400_0000, &["jump"]),                                 // b .
        (0xd61f_0200, &["indirect-jump"]),                        // br x16
        (0x9400_0000, &["call"]),                                 // bl .
        (0xd63f_0100, &["indirect-call"]),                        // blr x8
        (0xd65f_03c0, &["return"]),                               // ret
        (0xd65f_0bff, &["return"]),                               // retaa
        (0xf940_0420, &["load"]),                                 // ldr x0, [x1, #8]
        (0xf940_07e0, &["load", "stack-slot"]),                   // ldr x0, [sp, #8]
        (0xb862_7820, &["load", "indexed"]),                      // ldr w0, [x1, x2, lsl #2]
        (0x5800_0000, &["load", "global"]),                       // ldr x0, .
        (0x3c81_0420, &["store", "128-bit"]),                     // str q0, [x1], #16
        (0xa9be_7bfd, &["store"]),                                // stp x29, x30, [sp, #-32]!
        (0xa941_53f3, &["load", "stack-slot"]),                   // ldp x19, x20, [sp, #16]
        (0xad40_0400, &["load", "128-bit"]),                      // ldp q0, q1, [x0]
        (0x4c40_a800, &["load", "128-bit"]),                      // ld1 {v0.4s, v1.4s}, [x0]
        (0x0c40_0000, &["load"]),                                 // ld4 {v0.8b-v3.8b}, [x0]
        (0x4ea2_8420, &["128-bit"]),                              // add v0.4s, v1.4s, v2.4s
        (0x0ea2_8420, &[]),                                       // add v0.2s, v1.2s, v2.2s
        (0x0e62_0020, &["128-bit"]),                              // saddl v0.4s, v1.4h, v2.4h
        (0x1e62_2820, &[]),                                       // fadd d0, d1, d2
        (0x0e0e_3c20, &[]),                                       // umov w0, v1.h[3]
        (0xf980_0000, &[]),                                       // prfm pldl1keep, [x0]
        (0x1000_0000, &[]),                                       // adr x0, .
        (0x1901_0440, &["repeat"]),                               // cpyfp [x0]!, [x1]!, x2!
        (0x8521_4000, &["gather", "indexed", "scalable-vector"]), // ld1w {z0.s}, p0/z, [x0, z1.s, uxtw #2]
        (0xa5e1_4000, &["load", "indexed", "scalable-vector"]),   // ld1d {z0.d}, p0/z, [x0, x1, lsl #3]
        (0x65c0_8020, &["scalable-vector"]),                      // fadd z0.d, p0/m, z0.d, z1.d
        (0x8b02_0020, &[]),                                       // add x0, x1, x2
    ];
    for &(word, words) in classes {
        assert_eq!(listing(&[word]).instructions()[0].class.words(), words, "{:?}", texts(&[word]));
    }
}

#[test]
fn addresses_of_two_instructions_have_a_name() {
    // adrp x0, 0x11000; add x1, x0, #16; ldr w2, [x1, #4]; adrp x3, 0x11000; ldr x3, [x3, #24]; bl 0x2000
    let words = [0x9000_0080, 0x9100_4001, 0xb940_0422, 0x9000_0083, 0xf940_0c63, 0x9400_03fb];
    let listing = listing(&words);
    let named = |address, name: &str| (Address(address), name.to_owned());
    let names = BTreeMap::from([
        named(0x11010, "table"),
        named(0x11014, "table+0x4"),
        named(0x11018, "stdout@GOT"),
        named(0x2000, "puts@plt"),
    ]);
    let addresses: Vec<Address> = names.keys().copied().collect();
    assert_eq!(listing.targets(), addresses);
    let texts = listing.texts(&names);
    assert_eq!(
        texts,
        [
            "adrp x0, 0x11000",
            "add x1, x0, #0x10 // table",
            "ldr w2, [x1, #4] // table+0x4",
            "adrp x3, 0x11000",
            "ldr x3, [x3, #24] // stdout@GOT",
            "bl puts@plt",
        ]
    );
    let classes: Vec<Vec<&str>> = listing.instructions().iter().map(|one| one.class.words()).collect();
    assert_eq!(classes[2..5], [vec!["load", "global"], vec![], vec!["load", "global"]]);
    // After a place that a branch leads to, nothing is known: b 0x1008 (the load) in place of the last instruction.
    let looped = self::listing(&[words[0], words[1], words[2], 0x17ff_ffff]);
    assert_eq!(looped.instructions()[2].target, None);
}

#[test]
fn what_the_thread_pointer_addresses_is_thread_local() {
    // mrs x0, tpidr_el0; add x1, x0, #16; ldr w2, [x1, #4]; ldr x3, [x0, x4]
    let listing = listing(&[0xd53b_d040, 0x9100_4001, 0xb940_0422, 0xf864_6803]);
    for one in &listing.instructions()[2..] {
        assert_eq!(one.class.words(), ["load", "thread-local"]);
    }
}

#[test]
fn a_frame_pointer_points_to_stack_slots() {
    // stp x29, x30, [sp, #-32]!; mov x29, sp; ldr x0, [x29, #24]
    let listing = listing(&[0xa9be_7bfd, 0x9100_03fd, 0xf940_0fa0]);
    assert_eq!(listing.instructions()[2].class.words(), ["load", "stack-slot"]);
}

#[test]
fn bytes_that_are_no_code_are_told_word_by_word() {
    let bytes = [0xff, 0xff, 0xff, 0xff, 0x1f, 0x20, 0x03, 0xd5, 0xc0, 0x03, 0x5f];
    let listing = Listing::decode(Address(0x1000), &bytes, InstructionSet::Aarch64);
    assert_eq!(listing.texts(&BTreeMap::new()), ["(bad)", "nop", "(bad)"]);
    assert_eq!(listing.end, Address(0x100b));
    assert_eq!(
        Listing::decode(Address(u64::MAX - 3), &bytes, InstructionSet::Aarch64).instructions().len(),
        3
    );
}

/// Any word is an instruction or none; no panic, whatever the address.
#[test]
fn any_words_have_a_text_and_a_class() {
    let mut state = 7_u64;
    let mut word = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as u32
    };
    for start in [0, 0x1000, u64::MAX - 0x100] {
        let bytes: Vec<u8> = (0..100_000).flat_map(|_| word().to_le_bytes()).collect();
        let listing = Listing::decode(Address(start), &bytes, InstructionSet::Aarch64);
        let texts = listing.texts(&BTreeMap::new());
        assert!(texts.iter().all(|text| !text.is_empty() && !text.contains("undefined")));
        let calls =
            listing.instructions().iter().filter(|one| one.class.kind == InstructionKind::Call).count();
        assert!((1000..10_000).contains(&calls), "one in 64 is `bl`: {calls}");
        assert!(!listing.is_unoptimised() || calls > 0);
    }
}
