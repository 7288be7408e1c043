//! Methods as HotSpot describes them: `ConstMethod`, which never moves or changes while its class is loaded, with the bytecodes and the lines behind it, and
//! the names in the pool of constants of its class.

use crate::function::{SourceLines, UNKNOWN, identity, read_same};
use crate::memory::head;
use crate::root::IDENTITY_WORDS;
use crate::{CodeId, Function, Memory, Unreadable};

use super::layout::{Layout, MethodLayout, Source};

/// Bytes of a `ConstMethod` of which its identity is made.
const BYTES: usize = 8 * IDENTITY_WORDS;
/// Longest name, in bytes.
const MAX_NAME: u64 = 4096;
/// Most bytes of a table of lines.
const MAX_LINES: u32 = 1 << 18;
/// In the flags of a `ConstMethod`: it has a table of lines.
const HAS_LINES: u64 = 1;

type Head = [u8; BYTES];

/// Reads a method, if the memory still matches `id`.
pub(super) fn read(memory: &dyn Memory, layout: &Layout, id: CodeId) -> Result<Function, Unreadable> {
    let layout = &layout.method;
    let masks = masks(layout);
    read_same(
        memory,
        id,
        |bytes: &Head| identity(bytes, &masks),
        |bytes| function(memory, layout, id.at, bytes),
    )
}

/// Identity of the method whose `Method` is at an address.
pub(super) fn id(memory: &dyn Memory, layout: &Layout, method: u64) -> Result<CodeId, Unreadable> {
    let layout = &layout.method;
    let at = memory.word(method.wrapping_add(layout.constant.into()))?;
    let bytes: Head = head(memory, at)?;
    let is_method = layout.size.value(&bytes) * 8 >= u64::from(layout.constant_bytes);
    let code = CodeId { at, identity: identity(&bytes, &masks(layout)) };
    is_method.then_some(code).ok_or(Unreadable(method))
}

/// The bytecode of a method at an address, counted from its first; or unknown.
pub(super) fn bytecode_index(layout: &Layout, method: CodeId, at: u64) -> u32 {
    let first = method.at.wrapping_add(layout.method.constant_bytes.into());
    let index = at.wrapping_sub(first);
    u32::try_from(index).ok().filter(|&index| index <= u16::MAX.into()).unwrap_or(UNKNOWN)
}

/// Masks of the words that don't change: the pool of constants, the size, and the indices of names.
fn masks(layout: &MethodLayout) -> [u64; IDENTITY_WORDS] {
    let mut bytes = [0; BYTES];
    let fields = [layout.size, layout.code_size, layout.name, layout.signature];
    let ranges = fields.map(|field| (field.offset, field.size)).into_iter().chain([(layout.pool, 8)]);
    for (offset, size) in ranges {
        let range = offset as usize..(offset + size) as usize;
        bytes.get_mut(range).into_iter().for_each(|bytes| bytes.fill(0xff));
    }
    let mut masks = [0; IDENTITY_WORDS];
    for (mask, bytes) in masks.iter_mut().zip(bytes.as_chunks().0) {
        *mask = u64::from_le_bytes(*bytes);
    }
    masks
}

fn function(
    memory: &dyn Memory,
    layout: &MethodLayout,
    at: u64,
    bytes: &Head,
) -> Result<Function, Unreadable> {
    let pool = crate::memory::word_in(bytes, layout.pool);
    let constant = |index: u64| {
        let slot = pool.wrapping_add(u64::from(layout.pool_bytes) + 8 * index);
        // The lowest bit says whether a string or a class was resolved.
        symbol(memory, layout, memory.word(slot)? & !1)
    };
    let name = constant(layout.name.value(bytes))?;
    let class = memory.word(pool.wrapping_add(layout.holder.into()))?;
    let class_name = symbol(memory, layout, memory.word(class.wrapping_add(layout.class_name.into()))?)?;
    let (structure, field) = match layout.source {
        Source::Pool(field) => (pool, field),
        Source::Class(field) => (class, field),
    };
    let index = field.read(memory, structure)?;
    let source = if index == 0 { None } else { constant(index).ok() };
    let lines = lines(memory, layout, at, bytes).unwrap_or_default();
    let first_line = lines.iter().map(|&(_, line)| line).min().unwrap_or(0);
    let file = file(&class_name, source.as_deref());
    let name = format!("{}.{name}", class_in_source(&class_name));
    let lines = SourceLines { instructions: lines, ends: None };
    Ok(Function { text: Some(lines), ..Function::without_lines(name, file, first_line) })
}

/// Reads a `Symbol`.
fn symbol(memory: &dyn Memory, layout: &MethodLayout, at: u64) -> Result<String, Unreadable> {
    let length = layout.symbol_length;
    let length = length.read(memory, at)?.min(MAX_NAME);
    let mut text = vec![0; length as usize];
    let is_read = memory.read(at.wrapping_add(layout.symbol_text.into()), &mut text);
    is_read.then(|| String::from_utf8_lossy(&text).into_owned()).ok_or(Unreadable(at))
}

/// A class as it is written in source text. Hidden classes, such as those of lambdas, have a number that differs between runs.
fn class_in_source(name: &str) -> String {
    without_number(name).replace('/', ".")
}

/// The name of a class without the number of a hidden one.
fn without_number(name: &str) -> &str {
    let Some((name, _)) = name.split_once("/0x").or_else(|| name.split_once("+0x")) else { return name };
    let numbered = name.rsplit_once('$').filter(|(_, number)| is_number(number));
    numbered.map_or(name, |(name, _)| name)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The source file of a class, with the folders that its package stands for. The class itself is named if it does not tell.
fn file(class: &str, source: Option<&str>) -> String {
    let class = without_number(class);
    let (package, name) = class.rsplit_once('/').unwrap_or(("", class));
    let source = source.map_or_else(|| format!("{name}.class"), str::to_owned);
    if package.is_empty() { source } else { format!("{package}/{source}") }
}

/// Bytecodes in ascending order, and the line of each and those up to the next.
fn lines(
    memory: &dyn Memory,
    layout: &MethodLayout,
    at: u64,
    bytes: &Head,
) -> Result<Vec<(u32, u32)>, Unreadable> {
    if layout.flags.value(bytes) & HAS_LINES == 0 {
        return Ok(Vec::new());
    }
    let before = layout.constant_bytes + layout.code_size.value(bytes) as u32;
    let all = (layout.size.value(bytes) as u32).saturating_mul(8);
    let mut table = vec![0; all.saturating_sub(before).min(MAX_LINES) as usize];
    let is_read = memory.read(at.wrapping_add(before.into()), &mut table);
    is_read.then(|| decode_lines(&table)).ok_or(Unreadable(at))
}

/// Decodes a table of lines: a byte for both differences, or 255 and two numbers with a sign; a zero ends it.
fn decode_lines(table: &[u8]) -> Vec<(u32, u32)> {
    /// Bits of a byte that are the line's difference.
    const LINE_BITS: u32 = 3;
    let mut numbers = super::numbers::Numbers::new(table, false);
    let (mut index, mut line) = (0_i32, 0_i32);
    let mut lines = Vec::new();
    while let Some(byte) = numbers.byte() {
        let (step, lines_further) = match byte {
            0 => break,
            0xff => {
                let (Some(step), Some(further)) = (numbers.signed(), numbers.signed()) else { break };
                (step, further)
            }
            _ => (i32::from(byte >> LINE_BITS), i32::from(byte & ((1 << LINE_BITS) - 1))),
        };
        index = index.wrapping_add(step);
        line = line.wrapping_add(lines_further);
        if let (Ok(index), Ok(line)) = (u32::try_from(index), u32::try_from(line)) {
            lines.push((index, line));
        }
    }
    // The compiler of Java may list them in another order.
    lines.sort_by_key(|&(index, _)| index);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_differences() {
        // Bytecode 0 in line 5; 3 bytecodes and 2 lines further; back by 4 lines at 40 further.
        let signed = |number: i32| ((number << 1) ^ (number >> 31)) as u8;
        let table = [5, 3 << 3 | 2, 0xff, signed(40), signed(-4), 0, 9];
        assert_eq!(decode_lines(&table), [(0, 5), (3, 7), (43, 3)]);
        assert_eq!(decode_lines(&[0xff, 0xff]), [], "a table that was cut");
    }

    #[test]
    fn classes_are_named_as_in_source_text() {
        assert_eq!(class_in_source("java/util/Map$Entry"), "java.util.Map$Entry");
        assert_eq!(class_in_source("T$W$$Lambda$14/0x0000000800c03000"), "T$W$$Lambda");
        assert_eq!(class_in_source("T$W$$Lambda/0x00007f1234"), "T$W$$Lambda");
        assert_eq!(class_in_source("T$1"), "T$1");
        assert_eq!(file("a/b/T$W", Some("T.java")), "a/b/T.java");
        assert_eq!(file("T$W$$Lambda$14+0x00007f99d4154210", None), "T$W$$Lambda.class");
    }
}
