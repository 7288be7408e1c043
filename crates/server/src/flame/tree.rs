//! The calls of a flame graph as bytes, as Pyroscope's servers send them to each other and to `profilecli query profile --function-names-only`: each call
//! as the length of its name, its name, its self value and the number of its callees, then the callees.

use plumb_store::CallTree;

use super::prune::Pruned;

/// Name of the calls that were pruned of a caller.
const OTHER: &str = "other";

/// Writes the kept calls below a call without a name.
pub(crate) fn write(tree: &CallTree<1>, pruned: &Pruned<1>) -> Vec<u8> {
    if tree.nodes.is_empty() {
        return Vec::new();
    }
    let mut callees: Vec<Vec<u32>> = vec![Vec::new(); pruned.nodes.len() + 1];
    for (place, kept) in pruned.nodes.iter().enumerate() {
        let caller = kept.caller.map_or(0, |caller| caller as usize + 1);
        callees[caller].push(place as u32 + 1);
    }
    let mut out = Vec::new();
    let mut waiting = vec![0_u32];
    while let Some(place) = waiting.pop() {
        let (name, own, [other]) = match place.checked_sub(1).map(|kept| &pruned.nodes[kept as usize]) {
            None => ("", 0, pruned.other),
            Some(kept) => {
                let name = tree.nodes[kept.node as usize].name;
                (&*tree.names[name as usize], kept.own[0], kept.other)
            }
        };
        let below = &callees[place as usize];
        call(&mut out, name, own, below.len() + usize::from(other != 0));
        if other != 0 {
            call(&mut out, OTHER, other, 0);
        }
        waiting.extend(below.iter().rev());
    }
    out
}

fn call(out: &mut Vec<u8>, name: &str, own: i64, callees: usize) {
    prost::encoding::encode_varint(name.len() as u64, out);
    out.extend_from_slice(name.as_bytes());
    prost::encoding::encode_varint(own.unsigned_abs(), out);
    prost::encoding::encode_varint(callees as u64, out);
}
