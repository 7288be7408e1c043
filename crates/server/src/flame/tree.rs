//! The calls of a flame graph as bytes, as Pyroscope's servers send them to each other and to `profilecli query profile --function-names-only`: each call
//! as the length of its name, its name, its self value and the number of its callees, then the callees.

use plumb_analyze::Callees;
use plumb_store::CallTree;

use super::prune::Pruned;

/// Name of the calls that were pruned of a caller.
const OTHER: &str = "other";

/// Writes the kept calls below a call without a name.
pub(crate) fn write(tree: &CallTree<1>, pruned: &Pruned<1>) -> Vec<u8> {
    if tree.nodes.is_empty() {
        return Vec::new();
    }
    let callees = Callees::new(pruned.nodes.iter().map(|kept| kept.caller));
    let mut out = Vec::new();
    let mut add = |name: &str, own, caller, [other]: [i64; 1]| {
        call(&mut out, name, own, callees.of(caller).len() + usize::from(other != 0));
        if other != 0 {
            call(&mut out, OTHER, other, 0);
        }
    };
    add("", 0, None, pruned.other);
    for (place, _) in callees.pre_order() {
        let kept = &pruned.nodes[place as usize];
        let name = tree.nodes[kept.node as usize].name;
        add(&tree.names[name as usize], kept.own[0], Some(place), kept.other);
    }
    out
}

fn call(out: &mut Vec<u8>, name: &str, own: i64, callees: usize) {
    prost::encoding::encode_varint(name.len() as u64, out);
    out.extend_from_slice(name.as_bytes());
    prost::encoding::encode_varint(own.unsigned_abs(), out);
    prost::encoding::encode_varint(callees as u64, out);
}
