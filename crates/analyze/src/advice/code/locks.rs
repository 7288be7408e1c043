//! Rule: CPU time goes into locks.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel, Names};

const FUNCTIONS: Names = Names {
    whole: &[
        "pthread_mutex_lock",
        "__pthread_mutex_lock",
        "___pthread_mutex_lock",
        "pthread_mutex_unlock",
        "__pthread_mutex_unlock",
        "___pthread_mutex_unlock",
        "__pthread_mutex_unlock_usercnt",
        "pthread_mutex_trylock",
        "___pthread_mutex_trylock",
        "pthread_spin_lock",
        "__pthread_spin_lock",
        "pthread_rwlock_rdlock",
        "pthread_rwlock_wrlock",
        "pthread_rwlock_unlock",
        "___pthread_rwlock_rdlock",
        "___pthread_rwlock_wrlock",
        "___pthread_rwlock_unlock",
        "__lll_lock_wait",
        "__lll_lock_wait_private",
        "__lll_lock_wake",
        "__lll_lock_wake_private",
        "runtime.lock2",
        "runtime.unlock2",
        "sync.(*Mutex).Lock",
        "sync.(*Mutex).lockSlow",
        "PyThread_acquire_lock_timed",
    ],
    begin: &[
        "__lll_",
        "lll_",
        "std::mutex::lock",
        "std::mutex::unlock",
        "std::sys::sync::mutex::",
        "std::sys::sync::rwlock::",
        "std::sync::poison::mutex::",
        "std::sync::mutex::",
        "parking_lot::",
        "<parking_lot::",
        "parking_lot_core::",
        "absl::Mutex::",
        "tbb::detail::d1::spin_mutex",
    ],
};

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "locks",
        claim: "takes and releases locks",
        pattern: "locks are taken and given back so often that this alone costs time, or threads spin for them",
        threshold: "at least 5% of processor time",
        remedy: "hold a lock for several operations, give each thread its own part and merge, use atomics or read-mostly structures (RCU, arc-swap)",
        bound: "the locking functions, without the time that threads wait asleep: plumb record --off-cpu tells that",
        source: "futex(7): without contention a lock is taken in user code alone; measured: 5 ns \
                 for lock and unlock; the threshold is judgement",
    },
    gain: GainModel::Parts { least: 0.8, most: 1.0, callers: 0.8 },
    extent: Extent::Calls,
    least_percent: 5.0,
    find: |code| code.calls_of(&FUNCTIONS),
};
