//! The page's types, made of the documents. `xtask codegen` has this test write them; without that it compares.

use std::collections::BTreeSet;

use ts_rs::{Config, TS, TypeVisitor};

use crate::answers::{
    AboutAnswer, CallsAnswer, FunctionsAnswer, Head, HeatmapAnswer, Lack, RecordingEntry, TreesAnswer,
    WaitsAnswer,
};
use crate::change::{ComparedNames, DiffDocument};
use crate::explain::ExplainDocument;
use crate::findings::Findings;
use crate::kernel::KernelDocument;
use crate::listing::ListingDocument;
use crate::procs::ProcessesDocument;
use crate::table::CauseJson;
use crate::timeline::TimelineDocument;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/src/api/documents.ts");
const HEAD: &str = "// Made of crates/documents by `cargo run -p xtask -- codegen`: do not edit.\n";

/// Declarations of types and of those of their members, which `ts_rs` visits in any order.
struct Declarations {
    config: Config,
    found: BTreeSet<String>,
}

impl TypeVisitor for Declarations {
    fn visit<T: TS + 'static + ?Sized>(&mut self) {
        // A type without a path is one of JavaScript.
        if T::output_path().is_some() && self.found.insert(T::decl(&self.config)) {
            T::visit_dependencies(self);
        }
    }
}

#[test]
fn the_page_has_the_types_of_the_documents() {
    // A number of JavaScript is what JSON.parse makes of any number.
    let config = Config::new().with_large_int("number");
    let mut types = Declarations { config, found: BTreeSet::new() };
    types.visit::<ProcessesDocument<'static>>();
    types.visit::<KernelDocument<'static>>();
    types.visit::<FunctionsAnswer<'static>>();
    types.visit::<TreesAnswer<'static>>();
    types.visit::<WaitsAnswer<'static>>();
    types.visit::<DiffDocument<'static>>();
    types.visit::<ComparedNames<'static>>();
    types.visit::<Findings>();
    types.visit::<ExplainDocument>();
    types.visit::<CauseJson>();
    types.visit::<Lack>();
    types.visit::<Head<'static>>();
    types.visit::<RecordingEntry>();
    types.visit::<AboutAnswer<'static>>();
    types.visit::<TimelineDocument<'static>>();
    types.visit::<HeatmapAnswer<'static>>();
    types.visit::<CallsAnswer<'static>>();
    types.visit::<ListingDocument>();
    let types: String = types.found.iter().map(|found| format!("\nexport {found}\n")).collect();
    let text: String =
        format!("{HEAD}{types}").lines().map(|line| format!("{}\n", line.trim_end())).collect();
    if std::env::var_os("PLUMB_WRITE").is_some() {
        std::fs::write(FILE, &text).expect("the file can be written");
    }
    let known = std::fs::read_to_string(FILE).unwrap_or_default();
    assert!(known == text, "web/src/api/documents.ts is stale: cargo run -p xtask -- codegen");
}
