//! Selects the blocks that count, so that each sample counts once.

use std::collections::{HashMap, HashSet};

use crate::block::BlockMeta;

/// Whether each block counts: it does unless it was merged into another block that counts.
///
/// Two servers may have merged the same blocks at the same time. Then only one of these merges counts: the one of more blocks, or else the first by
/// name. Blocks that only the other one replaces count individually.
pub(crate) fn live(blocks: &[&BlockMeta]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..blocks.len()).collect();
    order.sort_by_key(|&place| (std::cmp::Reverse(blocks[place].replaces.len()), &blocks[place].id));
    let mut claimed: HashMap<&str, usize> = HashMap::new();
    let mut lost: HashSet<usize> = HashSet::new();
    for place in order {
        let replaces = &blocks[place].replaces;
        if replaces.iter().any(|id| claimed.contains_key(id.as_str())) {
            lost.insert(place);
        } else {
            claimed.extend(replaces.iter().map(|id| (id.as_str(), place)));
        }
    }
    let is_live = |place: usize| !lost.contains(&place) && !claimed.contains_key(blocks[place].id.as_str());
    (0..blocks.len()).map(is_live).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(id: &str, replaces: &[&str]) -> BlockMeta {
        let replaces = replaces.iter().map(|&id| id.to_owned()).collect();
        BlockMeta { replaces, ..BlockMeta::named(id) }
    }

    fn counted(blocks: &[BlockMeta]) -> Vec<&str> {
        let metas: Vec<&BlockMeta> = blocks.iter().collect();
        let kept = live(&metas);
        blocks.iter().zip(kept).filter(|&(_, is_live)| is_live).map(|(block, _)| block.id.as_str()).collect()
    }

    #[test]
    fn each_sample_counts_once() {
        let (a, b, c) = (block("a", &[]), block("b", &[]), block("c", &[]));
        assert_eq!(counted(&[a.clone(), b.clone()]), ["a", "b"]);
        assert_eq!(counted(&[a.clone(), b.clone(), block("ab", &["a", "b"])]), ["ab"]);
        // A merge of a merge, some of whose sources still exist.
        assert_eq!(counted(&[a.clone(), block("ab", &["a", "b"]), block("abc", &["ab", "c"])]), ["abc"]);
        // Two merges of the same blocks.
        let twice = [a.clone(), b.clone(), block("x", &["a", "b"]), block("y", &["b", "a"])];
        assert_eq!(counted(&twice), ["x"]);
        let wider = [a, b, c.clone(), block("x", &["a", "b"]), block("y", &["b", "c", "d"])];
        assert_eq!(counted(&wider), ["a", "y"]);
    }
}
