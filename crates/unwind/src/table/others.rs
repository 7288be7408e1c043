//! Tables of architectures other than x86_64, from full rows: slower to build, otherwise the same.
//!
//! Rules do not record whether a return address is signed or whether code is Thumb code: walks handle that. Most
//! 32-bit ARM code has one rule per function (`.ARM.exidx`). If a file also has `.debug_frame`, its table has those
//! rules, and leaves functions without them to the index.

use super::Content;
use super::layout::{bits, rule_of};
use super::rows::Collected;
use super::{Table, TableError};
use crate::aarch64::Aarch64;
use crate::arm::Arm;
use crate::arm::exidx;
use crate::isa::Isa;
use crate::module::Module;
use crate::row::Row;
use crate::rule::{Kind, Rule};

/// Converts a row of that architecture to a rule; [`Kind::Odd`] if no compact rule fits.
pub(super) fn rule(isa: Isa, row: &Row) -> u64 {
    let rule = match isa {
        Isa::X86_64 => Rule::compact(row),
        Isa::Aarch64 => Rule::compact_for::<Aarch64>(row),
        Isa::Arm => Rule::compact_for::<Arm>(row),
    };
    bits(rule.unwrap_or(Rule::only(Kind::Odd)))
}

/// Builds the table of a file whose rules are only in `.ARM.exidx`; `None` for other files.
pub(super) fn of_exidx<B: AsRef<[u8]>>(
    module: &Module<B>,
    content: Content,
) -> Option<Result<Table, TableError>> {
    let sections = module.sections();
    let is_all = sections.isa == Isa::Arm && module.functions().is_none_or(|functions| functions.len() == 0);
    let (index, details) = module.exidx().filter(|_| is_all)?;
    let mut collected = Collected::default();
    let mut before = 0;
    for start in exidx::starts(index) {
        if start.0 < before {
            return Some(Err(TableError::Unsorted));
        }
        before = start.0;
        let row = exidx::row_at(index, details, start);
        let odd = bits(Rule::only(Kind::Odd));
        collected.push(start.0, row.ok().flatten().map_or(odd, |row| rule(Isa::Arm, &row)));
    }
    // The last function has no known end.
    Some(collected.check().map(|()| table(Isa::Arm, content, 1 << 32, collected)))
}

/// Creates a table from collected rows.
pub(super) fn table(isa: Isa, content: Content, end: u64, collected: Collected) -> Table {
    Table {
        isa,
        content,
        build_id: [0; 20],
        base: collected.base,
        end,
        pages: collected.pages.into(),
        rows: collected.rows.into(),
        rules: collected.rules.list.iter().filter_map(|&rule| rule_of(isa, rule)).collect(),
    }
}
