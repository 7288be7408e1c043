//! Finds and caches the rule of an address that is not in the cache.

use crate::address::Svma;
use crate::architecture::Architecture;
use crate::cache::{Cache, Key, Packed};
use crate::code::{CodeMap, Located};
use crate::frame::End;
use crate::module::Module;
use crate::rule::{Kind, Rule};

/// Finds the rule of an address and inserts it into the cache. Also returns the packed rule, or `None` for that if
/// there is no room.
#[inline]
pub(crate) fn learn<A: Architecture, C: CodeMap>(
    code: &C,
    cache: &mut Cache,
    key: Key,
) -> Result<(Rule, Option<Packed>), End> {
    let lookup = key.pc.offset(-i64::from(key.is_return));
    let rule = match code.locate(lookup) {
        Located::Unmapped => return Err(End::NotMapped),
        Located::Unreadable => return Err(End::FileUnreadable),
        Located::NoInfo => Rule::only(Kind::Missing),
        Located::Module { module, .. } if module.isa() != A::ISA => Rule::only(Kind::Bad),
        Located::Module { module, bias } => {
            let stated = lookup.to_svma(bias);
            let tabled = key.is_return.then(|| module.tabled(stated)).flatten();
            match tabled.or_else(|| module.quick_rule(stated, &mut cache.heads)) {
                Some(rule) => rule,
                None => by_full_row::<A, C::Bytes>(module, cache, stated, bias),
            }
        }
    };
    let packed = cache.insert(key, rule);
    Ok((rule, packed))
}

/// Finds the rule of an address by decoding the full row.
#[inline(never)]
fn by_full_row<A: Architecture, B: AsRef<[u8]>>(
    module: &Module<B>,
    cache: &mut Cache,
    stated: Svma,
    bias: u64,
) -> Rule {
    match module.frame_row(stated, &mut cache.scratch) {
        Err(_) => Rule::only(Kind::Bad),
        Ok(None) if module.has_info() => Rule::only(Kind::MissingHere),
        Ok(None) => Rule::only(Kind::Missing),
        Ok(Some(row)) => Rule::compact_for::<A>(&row)
            .unwrap_or_else(|| cache.add_odd(&row, module.text(row.section), bias)),
    }
}
