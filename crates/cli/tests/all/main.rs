//! The tests of `plumb` as one program, of which a module is a suite. A suite that measures what others would disturb is a program of its own.

mod address_spaces;
mod agent;
mod agent_containers;
mod agent_files;
mod agent_inside;
mod agent_kernel_time;
mod agent_off_cpu;
mod agent_page_faults;
mod agent_processes;
mod agent_writes;
#[path = "../agents/mod.rs"]
mod agents;
mod annotate;
mod assembly;
mod backup;
mod bad_calls;
mod clock_jumps;
mod compare;
mod counters;
mod debuginfod;
mod deep;
mod diff;
mod doctor;
mod ends;
mod events;
mod explain;
mod explain_waits;
mod export;
mod go;
mod goroutines;
#[path = "../hanging/mod.rs"]
mod hanging;
mod hostile_names;
mod import;
mod java;
mod javascript;
mod json;
mod off_cpu;
mod one_function;
mod other_programs;
mod outputs;
mod page;
mod perf_data;
mod pgo;
mod places;
mod prints;
mod probes;
mod procs;
#[path = "../python/mod.rs"]
mod python;
mod query_report;
mod refusals;
mod roots;
mod scopes;
mod screens;
mod selections;
mod serve;
mod serving;
#[path = "../spun/mod.rs"]
mod spun;
mod stack;
mod stack_python;
mod stat;
#[path = "../target/mod.rs"]
mod target;
mod thread_exec;
mod thunks;
mod top;
mod trace;
mod typed;
mod uretprobes;
mod view;
