//! capture-perf
