//! The page's types, made of the documents. `xtask codegen` has this test write them; without that it compares.

use ts_rs::{Config, TS};

use crate::answers::{FunctionsAnswer, Head, Lack, TreesAnswer, WaitsAnswer};
use crate::change::{ChangeDocument, ChangedRow, DiffDocument, MovedFunction};
use crate::findings::{
    AnswerBound, BoundReason, Finding, FindingEvidence, FindingKind, FindingOwner, Findings, LargeService,
};
use crate::kernel::{KernelDocument, KernelKind, KernelStack, KernelTimeRow};
use crate::procs::{ProcessesDocument, ProgramRow, StartRow};
use crate::stack::FrameRow;
use crate::table::{CauseJson, CostJson, NodeJson, PlaceJson, RowJson, TreeJson};
use crate::waits::WaitRow;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/src/api/documents.ts");
const HEAD: &str = "// Made of crates/documents by `cargo run -p xtask -- codegen`: do not edit.\n";

#[test]
fn the_page_has_the_types_of_the_documents() {
    // A number of JavaScript is what JSON.parse makes of any number.
    let config = Config::new().with_large_int("number");
    let declarations = [
        ProcessesDocument::decl(&config),
        ProgramRow::decl(&config),
        StartRow::decl(&config),
        FrameRow::decl(&config),
        KernelDocument::decl(&config),
        KernelTimeRow::decl(&config),
        KernelKind::decl(&config),
        KernelStack::decl(&config),
        CostJson::decl(&config),
        PlaceJson::decl(&config),
        RowJson::decl(&config),
        NodeJson::decl(&config),
        TreeJson::decl(&config),
        CauseJson::decl(&config),
        Lack::decl(&config),
        Head::decl(&config),
        FunctionsAnswer::decl(&config),
        TreesAnswer::decl(&config),
        WaitsAnswer::decl(&config),
        WaitRow::decl(&config),
        DiffDocument::decl(&config),
        ChangedRow::decl(&config),
        ChangeDocument::decl(&config),
        MovedFunction::decl(&config),
        Findings::decl(&config),
        Finding::decl(&config),
        FindingKind::decl(&config),
        FindingOwner::decl(&config),
        FindingEvidence::decl(&config),
        LargeService::decl(&config),
        AnswerBound::decl(&config),
        BoundReason::decl(&config),
    ];
    let types = declarations.map(|declaration| format!("\nexport {declaration}\n"));
    let text: String =
        format!("{HEAD}{}", types.concat()).lines().map(|line| format!("{}\n", line.trim_end())).collect();
    if std::env::var_os("PLUMB_WRITE").is_some() {
        std::fs::write(FILE, &text).expect("the file can be written");
    }
    let known = std::fs::read_to_string(FILE).unwrap_or_default();
    assert!(known == text, "web/src/api/documents.ts is stale: cargo run -p xtask -- codegen");
}
