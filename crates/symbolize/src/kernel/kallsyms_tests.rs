//! The table parsed from text, read from the cache, and from invalid bytes.

use super::*;

const TEXT: &str = "0000000000000000 A fixed_percpu_data\n\
    ffffffff81000000 T _stext\n\
    ffffffff81000000 t startup_64\n\
    ffffffff81000100 W weak_one\n\
    ffffffff81000100 t alias\n\
    ffffffff81000200 D data_here\n\
    ffffffffc0000000 t mod_init\t[video]\n\
    ffffffffc0000040 t mod_run\t[video]\n\
    ffffffffc0000800 t bpf_prog_1_x\t[bpf]\n\
    ffffffffc0001000 t mod_far\t[video]\n";

fn table() -> Kallsyms {
    Kallsyms::read(TEXT.as_bytes()).unwrap().unwrap()
}

fn find(table: &Kallsyms, module: &str, address: u64) -> Option<String> {
    table.find(module, address).map(|(name, _)| name)
}

#[test]
fn addresses_have_the_names_that_the_text_gives_them() {
    let table = table();
    assert_eq!(table.find("", 0xffff_ffff_8100_00ff), Some(("_stext".to_owned(), 0xffff_ffff_8100_0000)));
    assert_eq!(find(&table, "", 0xffff_ffff_8100_0100).as_deref(), Some("alias"));
    assert_eq!(find(&table, "", 0xffff_ffff_8100_0200), None, "data is no function");
    assert_eq!(find(&table, "", 0xffff_ffff_80ff_ffff), None);
    assert_eq!(find(&table, "[video]", 0xffff_ffff_c000_0041).as_deref(), Some("mod_run"));
    // With a wrong or missing module the nearest symbol is taken.
    assert_eq!(find(&table, "", 0xffff_ffff_c000_0900).as_deref(), Some("bpf_prog_1_x"));
    assert_eq!((table.len(""), table.len("[video]"), table.len("[none]")), (5, 3, 0));
}

#[test]
fn hidden_addresses_are_no_table() {
    let hidden = "0000000000000000 T _stext\n0000000000000000 t startup_64\n";
    assert_eq!(Kallsyms::read(hidden.as_bytes()).unwrap(), None);
}

#[test]
fn text_in_pieces_is_the_same() {
    struct Slow<'t>(&'t [u8]);
    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let size = self.0.len().min(7).min(buffer.len());
            let (now, later) = self.0.split_at(size);
            buffer[..size].copy_from_slice(now);
            self.0 = later;
            Ok(size)
        }
    }
    assert_eq!(Kallsyms::read(Slow(TEXT.as_bytes())).unwrap().unwrap(), table());
    // Without the last newline, and with a line that the kernel does not write.
    assert_eq!(Kallsyms::read(TEXT.trim_end().as_bytes()).unwrap().unwrap(), table());
    let long = format!("{}\n{TEXT}", "x".repeat(3 * CHUNK));
    assert_eq!(Kallsyms::read(long.as_bytes()).unwrap().unwrap(), table());
}

#[test]
fn what_is_kept_is_all_but_what_comes_and_goes() {
    let kept = Kallsyms::from_bytes(table().to_bytes()).unwrap();
    for (module, address) in [("", 0xffff_ffff_8100_0000), ("[video]", 0xffff_ffff_c000_1000)] {
        assert!(kept.has(module, address));
        assert_eq!(kept.find(module, address), table().find(module, address));
    }
    assert_eq!(kept.len("[bpf]"), 0);
    assert!(!kept.has("", 0xffff_ffff_c000_0900), "the kernel itself ends before");
    assert!(!kept.has("[bpf]", 0xffff_ffff_c000_0900));
}

#[test]
fn damaged_bytes_are_refused_or_give_other_names() {
    let whole = table().to_bytes();
    for at in 0..whole.len() {
        assert!(Kallsyms::from_bytes(whole[..at].to_vec()).is_none_or(|table| table.names.len() < 100));
        for bit in [1, 0x80] {
            let mut bytes = whole.clone();
            bytes[at] ^= bit;
            let Some(table) = Kallsyms::from_bytes(bytes) else { continue };
            for address in [0, 0xffff_ffff_8100_0100, u64::MAX] {
                let _ = (table.find("", address), table.has("[video]", address));
            }
        }
    }
}
