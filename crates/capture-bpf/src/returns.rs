//! Return addresses that return probes (uretprobes) have replaced, of threads that are stopped.
//!
//! Elsewhere: the same for the thread that a sample interrupts, which the walk in the kernel looks up itself (bpf/drafts.h).

use std::io::{self, Read};
use std::sync::Mutex;

use aya::Ebpf;

use crate::object::{Machine, each_task};
use crate::refusal::{LoadError, refused};
use crate::wire::ReplacedReturn;

/// The program, as `xtask/bpf.sh` made it.
static OBJECT: &[u8] = crate::object::object!("returns");
/// The program that is run for each thread.
const RETURNS: &str = "on_returns";

/// The loaded program.
#[derive(Debug)]
pub struct ReplacedReturns {
    // Each reading attaches the program, which takes it exclusively.
    bpf: Mutex<Ebpf>,
}

impl ReplacedReturns {
    /// Loads the program.
    pub fn load() -> Result<Self, LoadError> {
        let machine = Machine::find(&["task_struct", "uprobe_task", "return_instance"], [])?;
        let mut bpf = machine.loader().load(OBJECT).map_err(refused("maps"))?;
        machine.load_each_task(&mut bpf, RETURNS)?;
        Ok(Self { bpf: Mutex::new(bpf) })
    }

    /// The stack addresses of a thread whose return addresses are replaced, each with the original return address.
    pub fn of(&self, tid: u32) -> io::Result<Vec<(u64, u64)>> {
        let mut bpf = self.bpf.lock().map_err(|_| io::Error::other("a reader panicked"))?;
        let mut file = each_task(&mut bpf, RETURNS).map_err(io::Error::other)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let all = bytes.chunks_exact(size_of::<ReplacedReturn>()).filter_map(read);
        Ok(all.filter(|one| one.tid == tid).map(|one| (one.at, one.pc)).collect())
    }
}

/// Decodes one; `None` if it is too short.
fn read(bytes: &[u8]) -> Option<ReplacedReturn> {
    let [ids, at, pc] = bytes.as_chunks::<8>().0 else { return None };
    let tid = u32::from_ne_bytes(*ids.first_chunk()?);
    Some(ReplacedReturn { tid, zero: 0, at: u64::from_ne_bytes(*at), pc: u64::from_ne_bytes(*pc) })
}
