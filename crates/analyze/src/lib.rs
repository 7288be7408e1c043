//! analyze
