//! The cause of kernel time, for each node of the stack tree.
//!
//! The outermost function in the tables decides: a page fault inside an exec belongs to the exec, and so does the old memory that an
//! exec frees, not to an exit. An interrupt is a cause of its own wherever it arrives, until it is over.

use super::functions::{Functions, Mark, Marks, Meaning, cause_of_call};
use crate::frame::Kind;
use crate::view::{NodeId, View};

/// The purpose that CPU time was spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// Code of the program, its libraries and its loader.
    User,
    /// A system call that is none of the other causes.
    Call,
    /// A page fault outside a system call.
    Fault,
    /// Making a process or thread, on both sides: the parent's call and the child's first steps.
    Fork,
    /// Replacing a program, including the release of the old one's memory.
    Exec,
    /// The end of a process or thread: freeing its memory, closing its files.
    Exit,
    /// Interrupts, and the work deferred until right after them.
    Interrupt,
    /// A kernel thread.
    Thread,
    /// System call entry or exit, if the system call is not known.
    Entry,
    /// The idle task.
    Idle,
    /// All other kernel code: scheduling and signals on return from an interrupt, exceptions other than page faults,
    /// and functions without a name.
    Other,
}

impl Cause {
    /// Returns the cause of a system call by name.
    pub fn of_call(name: &str) -> Self {
        cause_of_call(name)
    }

    /// Stable name, for machine-readable output. Each [`Call`](Cause::Call) is reported by its own name.
    pub fn name(self) -> &'static str {
        match self {
            Cause::User => "user",
            Cause::Call => "syscall",
            Cause::Fault => "page-fault",
            Cause::Fork => "fork",
            Cause::Exec => "exec",
            Cause::Exit => "exit",
            Cause::Interrupt => "irq",
            Cause::Thread => "kernel-thread",
            Cause::Entry => "syscall-entry",
            Cause::Idle => "idle",
            Cause::Other => "other",
        }
    }
}

/// The meaning of a node of the stack tree for samples in it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place<'v> {
    /// The innermost frame outside the kernel.
    pub(crate) user: Option<NodeId>,
    /// Cause according to the outermost known function.
    decided: Option<Cause>,
    /// The system call that this function implements.
    call: Option<&'v str>,
    in_kernel: bool,
    in_interrupt: bool,
    marks: Marks,
}

impl<'v> Place<'v> {
    /// Whether a function that sets `mark` is on the stack.
    pub(crate) fn has(&self, mark: Mark) -> bool {
        self.marks.has(mark)
    }

    /// Returns the cause. `call` is the name of the system call that the sample is known to be in.
    pub(crate) fn cause(&self, call: Option<&str>) -> Cause {
        match (self.decided, call) {
            _ if !self.in_kernel => Cause::User,
            _ if self.in_interrupt => Cause::Interrupt,
            // A signal may end the process in any system call.
            (Some(Cause::Exit), _) => Cause::Exit,
            (_, Some(call)) => cause_of_call(call),
            (Some(cause), None) => cause,
            (None, None) if self.has(Mark::ENTRY) => Cause::Entry,
            (None, None) => Cause::Other,
        }
    }

    /// Returns the system call according to the functions on the stack.
    pub(crate) fn call(&self) -> Option<&'v str> {
        self.call
    }

    /// Returns the place of a kernel function with this meaning called from here.
    fn callee(self, meaning: &Meaning<'v>) -> Self {
        Place {
            user: self.user,
            decided: self.decided.or(meaning.cause),
            call: if self.decided.is_none() { meaning.call } else { self.call },
            in_kernel: true,
            in_interrupt: meaning.interrupt.unwrap_or(self.in_interrupt),
            marks: self.marks.and(meaning),
        }
    }
}

/// The places of all nodes.
pub(crate) struct Places<'v> {
    places: Vec<Place<'v>>,
    /// Whether there are kernel frames but none has a name: their causes are unknown.
    pub(crate) nameless: bool,
}

impl<'v> Places<'v> {
    pub(crate) fn new(view: &'v View<'_>) -> Self {
        let functions = Functions::default();
        let meanings: Vec<Meaning<'v>> = view.frames().map(|(_, frame)| functions.of(frame)).collect();
        let mut kernel = view.frames().filter(|(_, frame)| frame.kind == Kind::Kernel).peekable();
        let nameless = kernel.peek().is_some() && !kernel.any(|(_, frame)| frame.named);
        let mut places: Vec<Place<'v>> = Vec::with_capacity(view.node_count());
        for index in 0..view.node_count() {
            let id = NodeId::from_index(index);
            let node = view.node(id);
            let place = match view.frame(node.frame).kind {
                Kind::User | Kind::Marker => Place { user: Some(id), ..Place::default() },
                Kind::Kernel => {
                    let caller = node.caller.map_or(Place::default(), |caller| places[caller.index()]);
                    caller.callee(&meanings[node.frame.0 as usize])
                }
            };
            places.push(place);
        }
        Places { places, nameless }
    }

    pub(crate) fn of(&self, node: NodeId) -> &Place<'v> {
        &self.places[node.index()]
    }
}
