//! Why the kernel ran, for each node of the tree of stacks.
//!
//! The outermost function that the tables know decides, so that a page fault inside an exec is exec's, and the old memory that an
//! exec frees is not an exit's. An interrupt is nobody's but its own, whatever it came in, until it is over.

use super::functions::{Functions, Mark, Marks, Meaning, cause_of_call};
use crate::frame::Kind;
use crate::view::{NodeId, View};

/// What processor time went into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// Code of the program, its libraries and loader.
    User,
    /// A system call that is none of the others.
    Call,
    /// A page fault that did not happen inside a system call.
    Fault,
    /// Making a process or thread, on both sides: the parent's call and the child's first steps.
    Fork,
    /// Replacing a program, freeing the old one's memory included.
    Exec,
    /// The end of a process or thread: freeing its memory, closing its files.
    Exit,
    /// Interrupts, and what they leave to be done right after.
    Interrupt,
    /// A thread of the kernel.
    Thread,
    /// The way into a system call or out of it, where it is not known which.
    Entry,
    /// Nothing was to be done.
    Idle,
    /// Everything else in the kernel: scheduling and signals on the way back from an interrupt, exceptions other than page faults,
    /// and functions without a name.
    Other,
}

impl Cause {
    /// The cause that a system call is, by its name.
    pub fn of_call(name: &str) -> Self {
        cause_of_call(name)
    }

    /// Stable name, for machine-readable output. Each [`Call`](Cause::Call) has a name of its own.
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

/// What a node of the tree of stacks says about samples in it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place<'v> {
    /// The innermost frame that is not the kernel's.
    pub(crate) user: Option<NodeId>,
    /// What the outermost function that is known says.
    decided: Option<Cause>,
    /// The system call that it implements.
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

    /// Why the kernel ran. `call`: the name of the system call that it is known to have been in.
    pub(crate) fn cause(&self, call: Option<&str>) -> Cause {
        match (self.decided, call) {
            _ if !self.in_kernel => Cause::User,
            _ if self.in_interrupt => Cause::Interrupt,
            // A signal that ends the process meets it in whatever call it is.
            (Some(Cause::Exit), _) => Cause::Exit,
            (_, Some(call)) => cause_of_call(call),
            (Some(cause), None) => cause,
            (None, None) if self.has(Mark::ENTRY) => Cause::Entry,
            (None, None) => Cause::Other,
        }
    }

    /// The system call that the functions of the stack tell of.
    pub(crate) fn call(&self) -> Option<&'v str> {
        self.call
    }

    /// That of a kernel function with this meaning that is called from here.
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

/// The places of all nodes, and whether any kernel function has a name.
pub(crate) struct Places<'v> {
    places: Vec<Place<'v>>,
    /// Frames of the kernel are there, but none has a name: what they are for can't be told.
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
