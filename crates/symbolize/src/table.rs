//! A symbol table sorted by address, with lookup by address.
//!
//! The rules are perf's, so that both give an address the same name:
//! - A symbol with a size covers that many bytes. An address in a gap after it has no name: the code there is
//!   something else (padding, a stripped local function).
//! - A symbol without a size (from assembly, or in a table without sizes) extends to the next symbol, but not
//!   beyond its section or module. Unlike in perf, `symbols.rs` ends it where another function begins.
//! - Of several symbols with one address the one with a size is preferred; then the non-weak one; then the global
//!   one; then the one with fewer leading underscores; then the longest name. One difference: a name with an old
//!   version (`cfree@GLIBC_2.2.5`) is taken last.
//!
//! Of nested symbols, the innermost that covers the address is taken.

/// A symbol, without its name, which is read only for the few symbols needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Symbol {
    /// First address.
    pub start: u64,
    /// Size in bytes, 0 if not known.
    pub size: u64,
    /// An address that the symbol cannot reach: the end of its section or module.
    pub limit: u64,
    /// Position of the name; its meaning is known to the table's creator only.
    pub name: u32,
    /// Binding.
    pub bind: Bind,
}

/// Symbol binding, in increasing order of preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Bind {
    /// Overridden by others.
    Weak,
    /// Visible in its own object only.
    Local,
    /// Visible everywhere.
    Global,
}

/// Number of preceding symbols searched for one that encloses others: deeper nesting than any assembler writes.
const MAX_NESTING: usize = 64;

/// Symbols sorted by address.
#[derive(Debug, Default)]
pub(crate) struct SymbolTable {
    symbols: Vec<Symbol>,
    /// For each symbol, the highest end among it and those before it.
    reach: Vec<u64>,
}

impl SymbolTable {
    /// Creates a table of these symbols.
    pub fn new(mut symbols: Vec<Symbol>) -> Self {
        symbols.sort_unstable_by_key(|symbol| (symbol.start, symbol.name));
        let mut next = u64::MAX;
        for i in (0..symbols.len()).rev() {
            let after = symbols.get(i + 1).map_or(u64::MAX, |symbol| symbol.start);
            if after != symbols[i].start {
                next = after;
            }
            let symbol = &mut symbols[i];
            symbol.limit = match symbol.size {
                0 => symbol.limit.min(next),
                size => symbol.start.saturating_add(size),
            };
        }
        let mut reach = Vec::with_capacity(symbols.len());
        let mut highest = 0;
        for symbol in &symbols {
            highest = symbol.limit.max(highest);
            reach.push(highest);
        }
        Self { symbols, reach }
    }

    /// Returns the number of symbols.
    pub fn len(&self) -> usize {
        self.symbols.len()
    }

    /// Returns all symbols, sorted by address.
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// Returns the symbol that `address` belongs to. `name` reads the name of a symbol.
    pub fn find(&self, address: u64, name: impl Fn(&Symbol) -> String) -> Option<Symbol> {
        let mut end = self.symbols.partition_point(|symbol| symbol.start <= address);
        for _ in 0..MAX_NESTING {
            let last = end.checked_sub(1)?;
            if self.reach[last] <= address {
                return None;
            }
            let start = self.symbols[last].start;
            let first = self.symbols[..end].partition_point(|symbol| symbol.start < start);
            let mut covering = self.symbols[first..end].iter().filter(|symbol| symbol.limit > address);
            if let Some(&only) = covering.next() {
                return Some(covering.fold(only, |best, &other| better(best, other, &name)));
            }
            end = first;
        }
        None
    }
}

/// Returns the preferred one of two symbols with one address.
pub(crate) fn better(a: Symbol, b: Symbol, name: &impl Fn(&Symbol) -> String) -> Symbol {
    let rank = |symbol: &Symbol| {
        let name = name(symbol);
        let old_version = name.contains('@') && !name.contains("@@");
        let underscores = name.bytes().take_while(|&byte| byte == b'_').count();
        (
            !old_version,
            symbol.size > 0,
            symbol.bind != Bind::Weak,
            symbol.bind == Bind::Global,
            std::cmp::Reverse(underscores),
            name.len(),
        )
    };
    if rank(&b) > rank(&a) { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 5] = ["a", "__b", "old@V1", "longer", "weakest"];

    fn symbol(start: u64, size: u64, name: u32, bind: Bind) -> Symbol {
        Symbol { start, size, limit: u64::MAX, name, bind }
    }

    fn find(symbols: &[Symbol], address: u64) -> Option<&'static str> {
        let name = |symbol: &Symbol| NAMES[symbol.name as usize].to_owned();
        SymbolTable::new(symbols.to_vec()).find(address, name).map(|symbol| NAMES[symbol.name as usize])
    }

    #[test]
    fn a_gap_behind_a_sized_symbol_has_no_name() {
        let symbols = [symbol(0x10, 8, 0, Bind::Global), symbol(0x40, 0, 1, Bind::Global)];
        assert_eq!(find(&symbols, 0x0f), None);
        assert_eq!(find(&symbols, 0x10), Some("a"));
        assert_eq!(find(&symbols, 0x17), Some("a"));
        assert_eq!(find(&symbols, 0x18), None);
        assert_eq!(find(&symbols, 0x4000), Some("__b"));
    }

    #[test]
    fn a_symbol_without_size_ends_at_the_next_or_at_its_section() {
        let mut first = symbol(0x10, 0, 0, Bind::Local);
        let alias = symbol(0x10, 0, 3, Bind::Global);
        assert_eq!(find(&[first, alias, symbol(0x20, 4, 1, Bind::Local)], 0x1f), Some("longer"));
        assert_eq!(find(&[first, symbol(0x20, 4, 1, Bind::Local)], 0x24), None);
        first.limit = 0x14;
        assert_eq!(find(&[first, symbol(0x20, 4, 1, Bind::Local)], 0x14), None);
    }

    #[test]
    fn nested_symbols_give_the_innermost() {
        let symbols = [
            symbol(0x10, 0x100, 0, Bind::Global),
            symbol(0x20, 8, 1, Bind::Local),
            symbol(0x30, 8, 3, Bind::Local),
        ];
        assert_eq!(find(&symbols, 0x22), Some("__b"));
        assert_eq!(find(&symbols, 0x2a), Some("a"));
        assert_eq!(find(&symbols, 0x50), Some("a"));
        assert_eq!(find(&symbols, 0x110), None);
    }

    #[test]
    fn aliases_are_chosen_as_perf_does() {
        let at = |size, name, bind| symbol(0x10, size, name, bind);
        assert_eq!(find(&[at(8, 1, Bind::Weak), at(0, 0, Bind::Global)], 0x10), Some("__b"));
        assert_eq!(find(&[at(8, 4, Bind::Weak), at(8, 0, Bind::Local)], 0x10), Some("a"));
        assert_eq!(find(&[at(8, 0, Bind::Local), at(8, 1, Bind::Global)], 0x10), Some("__b"));
        assert_eq!(find(&[at(8, 0, Bind::Global), at(8, 1, Bind::Global)], 0x10), Some("a"));
        assert_eq!(find(&[at(8, 0, Bind::Global), at(8, 3, Bind::Global)], 0x10), Some("longer"));
        assert_eq!(find(&[at(8, 2, Bind::Global), at(8, 0, Bind::Weak)], 0x10), Some("a"));
    }
}
