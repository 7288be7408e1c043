#!/usr/bin/env python3
"""Whether tests notice: small faults are put into a copy of the tree, one at a time, and the test that has to catch each is run.

The copy is of what is committed, with a target folder of its own. A fault is a text that is replaced in one file; a text that is not there
exactly once is an error, so that the list follows the code. For each fault only its test's binary is built and only the named test is run,
which has to pass without the fault and to fail with it, three times; failing to compile does not count. Needs what the named tests need, and fails where
they would skip.

    bench/faults/run.py [-o FILE] [FAULT...]
"""
import argparse
import datetime
import os
import pathlib
import platform
import re
import subprocess
import sys
import time
from typing import NamedTuple

# How often a test may try to pass.
TRIES = 3
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class Fault(NamedTuple):
    """One fault, and who has to notice it."""

    name: str
    what: str
    file: str
    old: str
    new: str
    # For `cargo test`: the package and its binary.
    binary: tuple
    test: str


def unit(package):
    return ("-p", package, "--lib")


def suite(package, name):
    return ("-p", package, "--test", name)


CLI_UNIT = ("-p", "plumb", "--bin", "plumb")

FAULTS = [
    Fault(
        "advice-rule", "a rule of the advice is no longer in the list",
        "crates/analyze/src/advice/mod.rs",
        "const RULES: [&ProgramRule; 5] = [\n    &fork_then_exec::RULE,\n", "const RULES: [&ProgramRule; 4] = [\n",
        suite("plumb-analyze", "procs"), "forks_of_a_large_parent_before_an_exec_are_told",
    ),
    Fault(
        "bias-sign", "the bias of a mapped file has the wrong sign",
        "crates/ingest/src/code.rs",
        "bias: pc.0.wrapping_sub(stated)", "bias: stated.wrapping_sub(pc.0)",
        suite("plumb-ingest", "perf_data"), "stacks_reach_the_root_through_the_known_callers",
    ),
    Fault(
        "signal-frame", "the mark of a signal frame in call-frame information is ignored",
        "crates/unwind/src/cfi/cie.rs",
        "b'S' => self.is_signal = true,", "b'S' => {}",
        suite("plumb-unwind", "walk"), "a_signal_frame_yields_where_it_struck",
    ),
    Fault(
        "lost-samples", "samples are not counted that the source says were dropped",
        "crates/ingest/src/lib.rs",
        "        self.statistics.lost_samples += samples;", "        let _ = samples;",
        unit("plumb-ingest"), "losses_are_counted",
    ),
    Fault(
        "lost-records", "records of a perf.data that say how much was lost are not counted",
        "crates/ingest/src/lib.rs",
        "RecordType::LOST => self.statistics.lost_records += wire::lost(reader)?,",
        "RecordType::LOST => drop(wire::lost(reader)?),",
        unit("plumb-ingest"), "losses_are_counted",
    ),
    Fault(
        "html", "names are written into the page of explain as they are",
        "crates/cli/src/cmd/explain/html.rs",
        "text.replace('&', \"&amp;\").replace('<', \"&lt;\").replace('>', \"&gt;\").replace('\"', \"&quot;\")", "text.to_owned()",
        CLI_UNIT, "names_stay_names",
    ),
    Fault(
        "self-children", "self and children of a report's rows are swapped",
        "crates/analyze/src/report/mod.rs",
        ".map(|(key, own, total)| Row {", ".map(|(key, total, own)| Row {",
        suite("plumb-analyze", "report"), "recursion_counts_once",
    ),
    Fault(
        "exit-code", "record ends with 0 whatever the command ends with",
        "crates/cli/src/cmd/record.rs",
        "if written || code != 0 { code } else { 1 }", "if written || code != 0 { 0 } else { 1 }",
        suite("plumb", "record"), "the_exit_status_is_the_commands",
    ),
    Fault(
        "weights", "fractions of weights are cut off, not rounded",
        "crates/formats/src/foreign/number.rs",
        "let whole = value.round();", "let whole = value.trunc();",
        unit("plumb-formats"), "only_what_can_be_a_weight_is_one",
    ),
    Fault(
        "build-id", "a file is read though its build id is not the recorded one",
        "crates/process/src/open.rs",
        "            Err(OpenError::Replaced)\n        }\n        _ => Ok(file),", "            Ok(file)\n        }\n        _ => Ok(file),",
        unit("plumb-process"), "recorded_file_must_have_the_recorded_build_id",
    ),
    Fault(
        "time-range", "the end of a stretch of time belongs to it",
        "crates/analyze/src/filter.rs",
        "(self.start..self.end).contains(&ns)", "(self.start..=self.end).contains(&ns)",
        suite("plumb-analyze", "report"), "filters_keep_what_they_say",
    ),
    Fault(
        "wire-fields", "two fields of a message from the kernel are swapped: blocked, waited for a processor",
        "crates/capture-bpf/src/messages.rs",
        "let (blocked_ns, waited_ns) = (reader", "let (waited_ns, blocked_ns) = (reader",
        suite("plumb", "off_cpu"), "times_are_those_that_the_program_measures",
    ),
    Fault(
        "off-cpu", "off-CPU time is refused with the words that a machine without BPF gets",
        "crates/cli/src/cmd/record/off_cpu.rs",
        "    match Programs::load(options) {\n        Ok(programs) => Ok(Box::new(programs)),\n",
        "    match Programs::load(options) {\n        Ok(_) => Err(anyhow!(\"cannot measure off-CPU time: no\\n  without:  -\")),\n",
        suite("plumb", "off_cpu"), "times_are_those_that_the_program_measures",
    ),
]


def copy(tree):
    """The committed tree. Files that are as they were keep their times, so that little is built again."""
    names = subprocess.run(["git", "ls-tree", "-r", "-z", "--name-only", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, names.decode().split("\0")):
        data = subprocess.run(["git", "cat-file", "--filters", f"HEAD:{name}"], cwd=ROOT, capture_output=True, check=True).stdout
        path = tree / name
        if not path.exists() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            path.chmod(0o755 if os.access(ROOT / name, os.X_OK) else 0o644)


def test(tree, target, fault):
    """Whether the named test passes, fails or is not built, and the end of what was printed."""
    environment = dict(os.environ, CARGO_TARGET_DIR=str(target), PLUMB_REQUIRE="all", CARGO_TERM_COLOR="never")
    build = ["cargo", "test", "--quiet", "--no-run", *fault.binary]
    done = subprocess.run(build, cwd=tree, env=environment, capture_output=True, text=True)
    if done.returncode:
        return "not built", done.stderr[-1500:]
    run = ["cargo", "test", "--quiet", *fault.binary, fault.test]
    # Measuring tests may fail on a machine that is busier than they allow for: a fault has to make them fail each time.
    for _ in range(TRIES):
        try:
            done = subprocess.run(run, cwd=tree, env=environment, capture_output=True, text=True, timeout=300)
        except subprocess.TimeoutExpired:
            return "hangs", ""
        ran = re.findall(r"(\d+) passed; (\d+) failed", done.stdout)
        if not any(passed != "0" or failed != "0" for passed, failed in ran):
            return "no such test", done.stdout[-500:]
        if done.returncode == 0:
            return "passes", done.stdout + done.stderr
    return "fails", done.stdout + done.stderr


def reason(output):
    """The first line of a failed assertion."""
    lines = output.splitlines()
    for number, line in enumerate(lines):
        if "panicked at" in line and number + 1 < len(lines):
            return lines[number + 1].strip()[:90]
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", help="where the table goes, too")
    parser.add_argument("faults", nargs="*", help="only these")
    arguments = parser.parse_args()
    scratch = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "faults"
    tree, target = scratch / "tree", scratch / "target"
    copy(tree)
    rows, survived = [], 0
    for fault in FAULTS:
        if arguments.faults and fault.name not in arguments.faults:
            continue
        began = time.monotonic()
        path = tree / fault.file
        text = path.read_text(encoding="utf-8")
        if text.count(fault.old) != 1:
            print(f"{fault.name}: {fault.file} has its text {text.count(fault.old)} times", file=sys.stderr)
            return 2
        before, _ = test(tree, target, fault)
        path.write_text(text.replace(fault.old, fault.new), encoding="utf-8")
        try:
            after, output = test(tree, target, fault)
        finally:
            path.write_text(text, encoding="utf-8")
        is_caught = (before, after) == ("passes", "fails")
        survived += not is_caught
        where = fault.binary[1].removeprefix("plumb-") + "/" + (fault.binary[3] if len(fault.binary) > 3 else "lib")
        rows.append(
            f"| {fault.what} | `{fault.file}` | `{where}`: `{fault.test}` | {before} | {after} | "
            f"{'caught' if is_caught else '**SURVIVES**'} |"
        )
        print(f"{fault.name}: {before} without, {after} with, {time.monotonic() - began:.0f} s  {reason(output)}", flush=True)
        if after == "not built" or before != "passes":
            print(output, file=sys.stderr)
    head = [
        "# Injected faults",
        "",
        f"`bench/faults/run.py` on {datetime.date.today()}, Linux {platform.release()}, {os.cpu_count()} processors.",
        f"{len(rows)} faults, {len(rows) - survived} caught by the test that is named for them.",
        "",
        "| fault | in | test | without | with | |",
        "|---|---|---|---|---|---|",
    ]
    table = "\n".join([*head, *rows]) + "\n"
    if arguments.output:
        pathlib.Path(arguments.output).write_text(table, encoding="utf-8")
    print(table)
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
