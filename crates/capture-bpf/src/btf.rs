//! The types of the running kernel, by which BPF programs are relocated: only those that the programs use.
//!
//! The kernel shows some 100,000 types (BTF, Documentation/bpf/btf.rst), and a library that takes them in and searches
//! through them takes 35 ms and 22 MB, with this 14 ms and 12 MB (bench/runs/2026-11-23-libraries.md). Here they are passed over once, and what is of no use becomes a nameless stub.
//! Types keep their numbers, by which the kernel knows them.
//!
//! Elsewhere: the loader's use of types.

use std::fs;
use std::io;

use rustc_hash::FxHashMap;

/// File with the kernel's types.
pub(crate) const PATH: &str = "/sys/kernel/btf/vmlinux";
/// `BTF_MAGIC`, as a little-endian machine writes it.
const MAGIC: u16 = 0xeb9f;
/// Kind of a forward declaration of a structure or union.
const KIND_FORWARD: u32 = 7;
/// Kind of an enumeration with 32-bit values.
const KIND_ENUM: u32 = 6;
/// Bytes of every type's common part: name, kind, size or referenced type.
const COMMON: usize = 12;
/// Average bytes of a type.
const TYPICAL: usize = 24;

/// Types of the kernel.
pub(crate) struct Types {
    bytes: Vec<u8>,
    types: (usize, usize),
    strings: (usize, usize),
}

/// One type, in place.
#[derive(Clone, Copy)]
struct Type<'a> {
    name: u32,
    kind: u32,
    all: &'a [u8],
}

impl Types {
    /// Reads the types of the running kernel.
    pub fn read() -> io::Result<Self> {
        #[cfg(test)]
        if let Some(made) = made::types() {
            return Ok(made);
        }
        Self::new(fs::read(PATH)?).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Parses BTF. `None` if it is invalid.
    fn new(bytes: Vec<u8>) -> Option<Self> {
        let word = |at: usize| u32_at(&bytes, at).map(|word| word as usize);
        let magic = u16::from_le_bytes(*bytes.first_chunk()?);
        let header = word(4)?;
        let place = |begin: usize, length: usize| {
            let begin = header.checked_add(begin)?;
            let end = begin.checked_add(length)?;
            (end <= bytes.len()).then_some((begin, end))
        };
        let types = place(word(8)?, word(12)?)?;
        let strings = place(word(16)?, word(20)?)?;
        (magic == MAGIC).then_some(Self { types, strings, bytes })
    }

    fn strings(&self) -> &[u8] {
        self.bytes.get(self.strings.0..self.strings.1).unwrap_or_default()
    }

    /// Whether the kernel has types, functions or constants with these names, in their order.
    pub fn have<const N: usize>(&self, names: [&str; N]) -> [bool; N] {
        let mut found = [false; N];
        for text in self.strings().split(|&byte| byte == 0) {
            if let Some(index) = names.iter().position(|name| name.as_bytes() == text) {
                found[index] = true;
            }
        }
        found
    }

    /// The value of an enumeration's constant. `None` if this kernel has no such name.
    pub fn constant(&self, enumeration: &str, name: &str) -> Option<u32> {
        let text = |at: u32| self.strings().get(at as usize..)?.split(|&byte| byte == 0).next();
        let is = |at: u32, wanted: &str| text(at) == Some(wanted.as_bytes());
        let mut all = self.from(0).filter(|one| one.kind == KIND_ENUM && is(one.name, enumeration));
        all.find_map(|one| {
            let mut members = one.all.get(COMMON..)?.as_chunks::<8>().0.iter();
            members.find_map(|member| {
                u32_at(member, 4).filter(|_| u32_at(member, 0).is_some_and(|at| is(at, name)))
            })
        })
    }

    /// The types from an offset on.
    fn from(&self, at: u32) -> impl Iterator<Item = Type<'_>> {
        let all = self.bytes.get(self.types.0..self.types.1).unwrap_or_default();
        let mut rest = all.get(at as usize..).unwrap_or_default();
        std::iter::from_fn(move || {
            let (name, info) = (u32_at(rest, 0)?, u32_at(rest, 4)?);
            let kind = info >> 24 & 0x1f;
            let (all, after) = rest.split_at_checked(COMMON + extra(kind, (info & 0xffff) as usize))?;
            rest = after;
            Some(Type { name, kind, all })
        })
    }

    /// Returns these types, with stubs for those that are neither named nor part of a named one.
    pub fn only(&self, names: &[&str]) -> Vec<u8> {
        let wanted = self.places(names);
        // Offset of each type in 32 bits: with larger entries this list would take more memory than all types that are kept.
        let mut begins: Vec<u32> = Vec::with_capacity(self.types.1.saturating_sub(self.types.0) / TYPICAL);
        let mut open: Vec<usize> = Vec::new();
        let mut at = 0;
        for one in self.from(0) {
            begins.push(at);
            at += one.all.len() as u32;
            if one.name != 0 && wanted.contains_key(&one.name) {
                open.push(begins.len());
            }
        }
        let mut keep = vec![false; begins.len() + 1];
        while let Some(id) = open.pop() {
            let begin = id.checked_sub(1).and_then(|index| begins.get(index));
            let Some(one) = begin.and_then(|&begin| self.from(begin).next()) else { continue };
            // The members of a named structure are not parts: only its own offset matters.
            let is_named_part = is_structure(one.kind) && one.name != 0 && !wanted.contains_key(&one.name);
            if keep.get(id) != Some(&false) || is_named_part {
                continue;
            }
            keep[id] = true;
            open.extend(one.parts());
        }
        let last = keep.iter().rposition(|&keep| keep).unwrap_or(0);
        let mut names = Names { from: self.strings(), strings: vec![0], places: FxHashMap::default() };
        let mut types = Vec::with_capacity(COMMON * last);
        for (one, &keep) in self.from(0).zip(keep.iter().skip(1)).take(last) {
            match keep {
                true => one.copy(&mut types, &mut names),
                false => types.extend([0, KIND_FORWARD << 24, 0].iter().flat_map(|word| word.to_le_bytes())),
            }
        }
        let header = [
            0x0001_0000 | u32::from(MAGIC),
            24,
            0,
            types.len() as u32,
            types.len() as u32,
            names.strings.len() as u32,
        ];
        let mut out: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).collect();
        out.extend(types);
        out.extend(names.strings);
        out
    }

    /// Offsets of these names among the strings.
    fn places<'a>(&self, names: &[&'a str]) -> FxHashMap<u32, &'a str> {
        let mut places = FxHashMap::default();
        let mut at = 0_u32;
        for text in self.strings().split(|&byte| byte == 0) {
            if let Some(&name) = names.iter().find(|name| name.as_bytes() == text) {
                places.insert(at, name);
            }
            at = at.saturating_add(text.len() as u32 + 1);
        }
        places
    }
}

impl Type<'_> {
    /// The types that it consists of. The target of a pointer is not a part.
    fn parts(&self) -> Vec<usize> {
        let word = |at: usize| u32_at(self.all, at).unwrap_or(0) as usize;
        match self.kind {
            // Arrays: their elements.
            3 => vec![word(COMMON)],
            // Structures and unions: their members.
            4 | 5 => (COMMON..self.all.len()).step_by(12).map(|at| word(at + 4)).collect(),
            // typedef, volatile, const, restrict, type tags.
            8..=11 | 18 => vec![word(8)],
            _ => Vec::new(),
        }
    }

    fn copy(&self, to: &mut Vec<u8>, names: &mut Names<'_>) {
        let begin = to.len();
        to.extend_from_slice(self.all);
        let members = match self.kind {
            4 | 5 | 19 => 12,
            6 => 8,
            _ => usize::MAX,
        };
        let named = (COMMON..self.all.len()).step_by(members).filter(|_| members != usize::MAX);
        for at in std::iter::once(0).chain(named) {
            let name = names.place(u32_at(self.all, at).unwrap_or(0));
            if let Some(word) = to.get_mut(begin + at..begin + at + 4) {
                word.copy_from_slice(&name.to_le_bytes());
            }
        }
    }
}

/// The strings that are kept.
struct Names<'a> {
    from: &'a [u8],
    strings: Vec<u8>,
    places: FxHashMap<u32, u32>,
}

impl Names<'_> {
    /// The new offset of a string.
    fn place(&mut self, at: u32) -> u32 {
        if at == 0 {
            return 0;
        }
        *self.places.entry(at).or_insert_with(|| {
            let text = self.from.get(at as usize..).unwrap_or_default();
            let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
            let place = self.strings.len() as u32;
            self.strings.extend_from_slice(text);
            self.strings.push(0);
            place
        })
    }
}

fn is_structure(kind: u32) -> bool {
    matches!(kind, 4 | 5)
}

/// Bytes of a type after the common ones, by its kind and number of elements.
fn extra(kind: u32, elements: usize) -> usize {
    match kind {
        // Integers, variables, declaration tags.
        1 | 14 | 17 => 4,
        // Arrays.
        3 => 12,
        // Structures, unions, sections, constants of 64 bits.
        4 | 5 | 15 | 19 => 12 * elements,
        // Constants, parameters.
        6 | 13 => 8 * elements,
        _ => 0,
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

/// Types of a fictitious kernel, for tests.
#[cfg(test)]
mod made {
    use std::cell::RefCell;

    use super::{COMMON, Types, u32_at};

    thread_local! {
        static MADE: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
    }

    /// Ends this thread's use of fictitious types when dropped.
    pub(crate) struct InUse;

    impl Drop for InUse {
        fn drop(&mut self) {
            MADE.take();
        }
    }

    /// The types that this thread uses instead of the running kernel's.
    pub(super) fn types() -> Option<Types> {
        MADE.with_borrow(Clone::clone).and_then(Types::new)
    }

    /// Bit in a structure's information: its members' offsets include the width of bit fields.
    const HAS_BIT_FIELDS: u32 = 1 << 31;

    impl Types {
        /// Makes this thread use these types until the value is dropped.
        pub fn instead_of_this_kernels(self) -> InUse {
            MADE.set(Some(self.bytes));
            InUse
        }

        /// Changes the type of all integers in these structures. Returns their number.
        pub fn retype_numbers(&mut self, structures: &[&str], name: &str) -> usize {
            let number = self.number_named(name);
            self.change_numbers(structures, |_, has_bit_fields, member| {
                // The new type is not a bit field.
                let offset = member[2] & if has_bit_fields { 0x00ff_ffff } else { u32::MAX };
                [member[0], number, offset]
            })
        }

        /// Turns all integers in these structures into bit fields. Returns their number.
        pub fn make_bit_fields(&mut self, structures: &[&str], bits: u32) -> usize {
            self.change_numbers(structures, |info, _, member| {
                *info |= HAS_BIT_FIELDS;
                [member[0], member[1], member[2] & 0x00ff_ffff | bits << 24]
            })
        }

        /// Renames fields. Returns their number.
        pub fn rename_fields(&mut self, structures: &[&str], fields: &[&str]) -> usize {
            let names = self.places(fields);
            let mut renamed = 0;
            self.change_members(structures, |_, _, _, member| {
                let is_one = names.contains_key(&member[0]);
                renamed += usize::from(is_one);
                // The name without its first letter.
                [member[0] + u32::from(is_one), member[1], member[2]]
            });
            renamed
        }

        fn number_named(&self, name: &str) -> u32 {
            let names = self.places(&[name]);
            let at = self.from(0).position(|one| one.kind == 1 && names.contains_key(&one.name));
            at.expect("every kernel has it") as u32 + 1
        }

        /// Changes integer members, given the structure's information, whether it had bit fields, and the member's three words.
        fn change_numbers(
            &mut self,
            structures: &[&str],
            mut change: impl FnMut(&mut u32, bool, [u32; 3]) -> [u32; 3],
        ) -> usize {
            let mut changed = 0;
            self.change_members(structures, |info, has_bit_fields, is_number, member| {
                changed += usize::from(is_number);
                if is_number { change(info, has_bit_fields, member) } else { member }
            });
            changed
        }

        fn change_members(
            &mut self,
            structures: &[&str],
            mut change: impl FnMut(&mut u32, bool, bool, [u32; 3]) -> [u32; 3],
        ) {
            let names = self.places(structures);
            let kinds: Vec<(u32, u32)> =
                self.from(0).map(|one| (one.kind, u32_at(one.all, 8).unwrap_or(0))).collect();
            // A typedef or a qualified type is an integer if its target is.
            let is_number = |mut id: u32| {
                for _ in 0..16 {
                    match kinds.get(id as usize - 1) {
                        Some((1, _)) => return true,
                        Some(&(8..=11 | 18, named)) if named != 0 => id = named,
                        _ => return false,
                    }
                }
                false
            };
            let mut at = self.types.0;
            let mut edits = Vec::new();
            for one in self.from(0) {
                if one.kind == 4 && names.contains_key(&one.name) {
                    let mut info = u32_at(one.all, 4).unwrap_or(0);
                    let has_bit_fields = info & HAS_BIT_FIELDS != 0;
                    for member in (COMMON..one.all.len()).step_by(12) {
                        let words = [0, 4, 8].map(|word| u32_at(one.all, member + word).unwrap_or(0));
                        let new =
                            change(&mut info, has_bit_fields, words[1] != 0 && is_number(words[1]), words);
                        edits.extend((0..3).map(|word| (at + member + 4 * word, new[word])));
                    }
                    edits.push((at + 4, info));
                }
                at += one.all.len();
            }
            for (at, word) in edits {
                self.bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use aya::Btf;

    use super::*;

    /// Fictitious kernel types: an integer, a structure of it and another one, a typedef of the latter.
    fn made_up() -> Vec<u8> {
        let strings = b"\0int\0outer\0inner\0x\0y\0loose\0name\0kinds\0first\0second\0";
        let at = |name: &[u8]| {
            strings.windows(name.len()).position(|text| text == name).expect("it is there") as u32
        };
        let words = [
            [at(b"int\0"), 1 << 24, 4, 32].as_slice(),
            &[at(b"inner\0"), 4 << 24 | 1, 4, at(b"y\0"), 1, 0],
            &[at(b"loose\0"), 4 << 24, 0],
            &[at(b"outer\0"), 4 << 24 | 2, 8, at(b"x\0"), 1, 0, 0, 2, 32],
            &[at(b"name\0"), 8 << 24, 4],
            &[at(b"kinds\0"), 6 << 24 | 2, 4, at(b"first\0"), 3, at(b"second\0"), 7],
        ]
        .concat();
        let types: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let header = [0x1_eb9f, 24, 0, types.len() as u32, types.len() as u32, strings.len() as u32];
        let mut bytes: Vec<u8> = header.iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
        bytes.extend(types);
        bytes.extend(strings);
        bytes
    }

    #[test]
    fn what_is_asked_for_is_kept_under_its_number() {
        let types = Types::new(made_up()).expect("these are types");
        assert_eq!(types.have(["outer", "no such", "loose"]), [true, false, true]);
        let only = Types::new(types.only(&["outer", "name"])).expect("these are types too");
        let kinds: Vec<_> = only.from(0).map(|one| one.kind).collect();
        assert_eq!(kinds, [1, KIND_FORWARD, KIND_FORWARD, 4, 8]);
        let parsed = Btf::parse(&only.bytes, aya::Endianness::default()).expect("another reader takes them");
        use aya_obj::btf::BtfKind;
        assert_eq!(parsed.id_by_type_name_kind("outer", BtfKind::Struct).expect("it is there"), 4);
        assert_eq!(parsed.id_by_type_name_kind("name", BtfKind::Typedef).expect("it is there"), 5);
        assert!(parsed.id_by_type_name_kind("loose", BtfKind::Struct).is_err());
    }

    #[test]
    fn constants_have_values() {
        let types = Types::new(made_up()).expect("these are types");
        assert_eq!(types.constant("kinds", "second"), Some(7));
        assert_eq!((types.constant("kinds", "third"), types.constant("outer", "second")), (None, None));
    }

    #[test]
    fn damaged_types_are_none() {
        let bytes = made_up();
        for length in 0..bytes.len() {
            if let Some(types) = Types::new(bytes[..length].to_vec()) {
                types.only(&["outer"]);
            }
        }
        for at in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0xff;
            if let Some(types) = Types::new(bytes) {
                types.only(&["outer", "name", "int"]);
                types.constant("kinds", "second");
            }
        }
    }

    #[test]
    fn types_of_this_kernel_keep_their_numbers() {
        let Ok(types) = Types::read() else {
            plumb_fixtures::skip(plumb_fixtures::Requirement::Kernel, format_args!("{PATH} is not there"));
            return;
        };
        use aya_obj::btf::BtfKind;
        let whole = Btf::from_sys_fs().expect("it could be read");
        let only = Btf::parse(
            &types.only(&["task_struct", "btf_trace_sched_process_exec"]),
            aya::Endianness::default(),
        );
        let only = only.expect("another reader takes them");
        for (name, kind) in
            [("task_struct", BtfKind::Struct), ("btf_trace_sched_process_exec", BtfKind::Typedef)]
        {
            assert_eq!(
                only.id_by_type_name_kind(name, kind).expect("it was asked for"),
                whole.id_by_type_name_kind(name, kind).expect("every kernel has it")
            );
        }
    }
}
