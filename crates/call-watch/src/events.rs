//! Merges calls and faults from two rings in order of time.

use std::collections::VecDeque;
use std::rc::Rc;

use plumb_analyze::{CallEvent, FaultEvent};
use plumb_capture_bpf::{Calls, Faults};
use plumb_syscalls::{CallEnd, Outcome, name};

use crate::paths::Paths;

/// A call.
pub(crate) struct Call {
    pub name: &'static str,
    pid: u32,
    tid: u32,
    arguments: [u64; 6],
    result: i64,
    begin_ns: u64,
    end_ns: u64,
    path: Option<Rc<str>>,
}

impl Call {
    pub fn event(&self) -> CallEvent<'_> {
        CallEvent {
            name: self.name,
            pid: self.pid,
            tid: self.tid,
            arguments: self.arguments,
            result: self.result,
            begin_ns: self.begin_ns,
            wall_ns: self.end_ns.saturating_sub(self.begin_ns),
            path: self.path.as_deref(),
        }
    }
}

/// A traced call or fault.
pub(crate) enum Event<'e> {
    /// A call returned.
    Call(&'e Call),
    /// A page fault.
    Fault(&'e FaultEvent),
}

/// Both rings, with the events read from them.
pub(crate) struct Events {
    calls: Calls,
    faults: Faults,
    paths: Paths,
    /// Events read from the rings and not yet delivered, each queue in order of time.
    waiting: (VecDeque<Call>, VecDeque<FaultEvent>),
}

impl Events {
    pub fn new(calls: Calls, faults: Faults, paths: Paths) -> Self {
        Self { calls, faults, paths, waiting: Default::default() }
    }

    /// Forgets which files the descriptors refer to: there were calls that the trace did not record.
    pub fn forget_descriptors(&mut self) {
        self.paths.forget();
    }

    /// Delivers all events before `now_ns`, up to which both rings have been read; if `last`, delivers all that remain.
    pub fn take(&mut self, now_ns: u64, last: bool, mut each: impl FnMut(Event<'_>)) {
        let (calls, faults) = (&mut self.waiting.0, &mut self.waiting.1);
        let paths = &mut self.paths;
        self.calls.take(|call| {
            let Some(name) = name(call.abi, call.number) else { return };
            let path = paths.of(name, call);
            let CallEnd::Returned(outcome) = call.end else { return };
            if !call.is_shown {
                return;
            }
            let result = match outcome {
                Outcome::Value(value) => value,
                Outcome::Error(number) => -i64::from(number),
            };
            let (begin_ns, end_ns) = (call.begin_ns, call.end_ns);
            calls.push_back(Call {
                name,
                pid: call.pid,
                tid: call.tid,
                arguments: call.args,
                result,
                begin_ns,
                end_ns,
                path,
            });
        });
        self.faults.take(|fault| {
            faults.push_back(FaultEvent { pid: fault.pid, address: fault.address, time_ns: fault.time_ns });
        });
        let until = if last { u64::MAX } else { now_ns };
        loop {
            let call = calls.front().map(|call| call.end_ns).filter(|&time| time < until);
            let fault = faults.front().map(|fault| fault.time_ns).filter(|&time| time < until);
            match (call, fault) {
                (None, None) => return,
                (Some(call), fault) if fault.is_none_or(|fault| call <= fault) => {
                    calls.pop_front().iter().for_each(|call| each(Event::Call(call)));
                }
                _ => faults.pop_front().iter().for_each(|fault| each(Event::Fault(fault))),
            }
        }
    }

    /// Number of calls and faults dropped because a ring was full.
    pub fn dropped(&self) -> u64 {
        self.calls.counts().dropped + self.faults.dropped()
    }
}
