// What the page reads, shows and remembers.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { deflateRawSync } from "node:zlib";
import * as model from "../build/model.mjs";
import { payload } from "./payload.mjs";

const p = (text) => text.split(" ").map((name) => `program|${name}`);
const made = (stacks) => model.decode(payload(stacks.map(([text, samples]) => [p(text), samples])));

test("what the command wrote is read as it was meant", async () => {
  // Written by the command's own test (crates/cli/src/cmd/flame/tests.rs), which fails if it writes anything else.
  const bytes = await readFile(new URL("../testdata/small.payload", import.meta.url));
  const { facts, frames, tree } = model.decode(Uint8Array.from(bytes));
  const shown = [...tree.frame.keys()].map((box) => {
    const frame = tree.frame[box];
    const place = tree.line[box] > 0 ? ` ${frames.file[frame]}:${tree.line[box]}` : "";
    return `${" ".repeat(tree.depth[box])}${frames.name[frame]} [${frames.kind[frame]} ${frames.dso[frame]}]${place} ${tree.samples[box]}/${tree.total[box]}`;
  });
  assert.deepEqual(shown, [
    "all [root ] 6/6000300",
    " [stack deeper than its copy] [missing ] 1/1000050",
    "  deep [program /opt/app] 1/1000050",
    " main [program /opt/app] /src/main.c:7 5/5000250",
    "  read [library /opt/libc.so.6] 2/2000100",
    "   vfs_read [kernel [kernel.kallsyms]] 2/2000100",
    "  sum [program /opt/app] 3/3000150",
    "   add [inlined /opt/app] /src/add.c:3 2/2000100",
  ]);
  assert.equal(facts.title, "app </script> --fast");
  assert.equal(facts.samples, 6);
  assert.equal(facts.complete, 5);
  assert.equal(facts.event, "cpu-clock");
});

test("what the command wrote of a difference is read as it was meant", async () => {
  // Written by the command's own test (crates/cli/src/cmd/diff/tests.rs), which fails if it writes anything else.
  const bytes = await readFile(new URL("../testdata/diff.payload", import.meta.url));
  const { facts, frames, tree } = model.decode(Uint8Array.from(bytes));
  const shown = (tree, swapped) =>
    [...tree.frame.keys()].map((box) => {
      const { base, next, mark } = model.amounts(tree, box, swapped);
      return `${" ".repeat(tree.depth[box])}${frames.name[tree.frame[box]]} ${base / 1e6} ${next / 1e6} ${mark} ${tree.total[box] / 1e6}`;
    });
  assert.deepEqual(shown(tree, false), [
    "all 7440 3337 less 4717",
    " main 7440 3337 less 4717",
    "  find 2000 1990 noise 10",
    "   do_syscall_64 2000 1990 noise 10",
    "    ksys_read 2000 1990 noise 10",
    "  fresh 0 300 new 300",
    "  getenv 4400 0 gone 4400",
    "  take 1000 1005 noise 5",
    "  tune 40 42 noise 2",
  ]);
  assert.deepEqual(shown(model.rewidened(tree, "all"), true).slice(5, 8), [
    "  fresh 300 0 gone 300",
    "  getenv 0 4400 new 4400",
    "  take 1005 1000 noise 1005",
  ]);
  assert.deepEqual(facts.diff.names, ["old.plumb", "new.plumb"]);
  assert.deepEqual(facts.diff.values, [7440e6, 3337e6]);
  const { callees, callers } = model.pivot(tree, frames.name.indexOf("getenv"));
  assert.deepEqual(model.amounts(callees, 0, false), { base: 4400e6, next: 0, mark: "noise" });
  assert.equal(callers.total[0], 4400e6);
});

test("changes are said as people say them", () => {
  assert.equal(model.changeOf(1e9, 1.1234e9, "ns"), "+123 ms (+12.3%)");
  assert.equal(model.changeOf(100, 50, "faults"), "−50 (−50.0%)");
  assert.equal(model.changeOf(0, 5e9, "ns"), "+5.00 s");
  assert.equal(model.changeOf(5e9, 0, "ns"), "−5.00 s (−100%)");
  assert.equal(model.signed(-1.5e9, "ns"), "−1.50 s");
  assert.equal(model.signed(0, "ns"), "0");
});

test("data unpacks from the form that it has in the page", async () => {
  const bytes = payload([[p("main a"), 200], [p("main b"), 70000]]);
  const text = deflateRawSync(bytes).toString("base64");
  assert.deepEqual(await model.unpack(`\n${text}\n`), bytes);
});

test("damaged data is an error, not a wrong picture", () => {
  const bytes = payload([[p("main"), 200]]);
  assert.throws(() => model.decode(bytes.subarray(0, bytes.length - 1)), /ends early/);
  assert.throws(() => model.decode(bytes.subarray(0, 9)), /no header/);
  // The frame of the second of two boxes, behind three columns of strings and one of kinds for two frames, and two depths.
  const other = bytes.slice();
  other[bytes.indexOf(10) + 1 + 4 * 2 + 2 + 1] = 2;
  assert.throws(() => model.decode(other), /has no frame 2/);
  assert.throws(() => model.decode(new TextEncoder().encode('{"format":2}\n')), /format 2/);
});

test("the address holds all that is shown", () => {
  const states = [
    { regex: false, icicle: false, callers: false },
    { zoom: "abc", regex: false, icicle: true, callers: false },
    { regex: false, icicle: false, callers: false, swapped: true, all: true },
    { zoom: "abc", find: "a&b=#c <x>", regex: true, icicle: false, callers: true, calls: "f00" },
  ];
  for (const state of states) {
    for (const byDefault of [false, true]) {
      assert.deepEqual(model.fromHash(`#${model.toHash(state, byDefault)}`, byDefault), state);
    }
  }
  assert.equal(model.toHash(states[0], false), "");
});

test("an address finds its box again, also in a later recording", () => {
  const before = made([["main a x", 1], ["main b x", 2]]);
  const after = made([["main 0new", 5], ["main a x", 9], ["main b x y", 2]]);
  const name = ({ frames, tree }, box) => model.pathTo(tree, box).map((at) => frames.name[tree.frame[at]]).join(" ");
  for (let box = 0; box < before.tree.size; box++) {
    const hash = model.hashOfBox(before.frames, before.tree, box);
    assert.equal(model.boxOfHash(before.frames, before.tree, hash), box);
    assert.equal(name(after, model.boxOfHash(after.frames, after.tree, hash)), name(before, box));
  }
  assert.equal(model.boxOfHash(after.frames, after.tree, "nonsense"), -1);
  const frame = before.frames.name.indexOf("x");
  const found = model.frameOfHash(after.frames, model.hashOfFrame(before.frames, frame));
  assert.equal(after.frames.name[found], "x");
});

test("arrows lead where they point, in both directions of growth", () => {
  const { frames, tree } = made([["main a x", 3], ["main b y", 5], ["main c", 1]]);
  const at = (name) => ({ callers: false, box: [...tree.frame.keys()].find((box) => frames.name[tree.frame[box]] === name) });
  const go = (scene, from, arrow) => frames.name[tree.frame[model.move(scene, at(from), arrow, 900).box]];
  const flame = { tree, icicle: false, zoom: { callers: false, box: 0 } };
  assert.equal(go(flame, "main", "up"), "b");
  assert.equal(go(flame, "b", "down"), "main");
  assert.equal(go(flame, "b", "left"), "a");
  assert.equal(go(flame, "b", "right"), "c");
  assert.equal(go(flame, "c", "right"), "c");
  assert.equal(go(flame, "x", "right"), "y");
  const icicle = { ...flame, icicle: true };
  assert.equal(go(icicle, "main", "down"), "b");
  assert.equal(go(icicle, "b", "up"), "main");
  // A box too narrow to see is stepped over, and one out of the zoomed window too.
  assert.equal(frames.name[tree.frame[model.move(flame, at("b"), "right", 2).box]], "b");
  assert.equal(go({ ...flame, zoom: at("b") }, "y", "left"), "y");
});

test("callers are on one side of a function, callees on the other", () => {
  const { frames, tree } = made([["main a f x", 3], ["main b f y", 5]]);
  const { callees, callers } = model.pivot(tree, frames.name.indexOf("f"));
  const scene = { tree: callees, callers, icicle: false, zoom: { callers: false, box: 0 } };
  const rows = Array.from({ length: model.rowCount(scene) }, (_, row) => model.depthAt(scene, row));
  assert.deepEqual(
    rows.map(({ callers: side, depth }) => (side ? -depth : depth)),
    [1, 0, -1, -2],
  );
  for (const [row, { callers: side, depth }] of rows.entries()) assert.equal(model.rowOf(scene, side, depth), row);
  const name = (place) => frames.name[model.treeOf(scene, place.callers).frame[place.box]];
  assert.equal(name(model.placeAt(scene, 0, 0.9)), "y");
  assert.equal(name(model.placeAt(scene, 2, 0.1)), "a");
  const root = { callers: false, box: 0 };
  assert.equal(name(model.move(scene, root, "up", 900)), "y");
  const below = model.move(scene, root, "down", 900);
  assert.equal(name(below), "b");
  assert.deepEqual(model.move(scene, below, "up", 900), root);
});

test("names get shorter in steps that keep what tells them apart", () => {
  for (const [name, ...forms] of [
    ["main", "main"],
    ["operator new(unsigned long)", "operator new"],
    ["void ns::f<int, std::vector<int> >(char*) const", "ns::f<int, std::vector<int> >", "ns::f<…>", "f<…>"],
    ["double Eval<12>::run<worker(int)::{lambda(double)#1}>(double)", "Eval<12>::run<worker(int)::{lambda(double)#1}>", "Eval<12>::run<…>", "run<…>"],
    ["std::_Rb_tree<int, std::pair<int const, char> >::_M_insert(int)", "std::_Rb_tree<int, std::pair<int const, char> >::_M_insert", "std::_Rb_tree<…>::_M_insert", "_M_insert"],
    ["app::run()::{lambda()#1}", "app::run()::{lambda()#1}", "app::run()::{lambda}"],
    ["A::operator->() const", "A::operator->", "operator->"],
    ["bool operator< <int>(A<int> const&, A<int> const&)", "bool operator< <int>"],
    ["std::function<void (int)>::operator()(int) const", "std::function<void (int)>::operator()", "std::function<…>::operator()", "operator()"],
    ["(anonymous namespace)::Loader::run(int)", "(anonymous namespace)::Loader::run", "run"],
    ["<alloc::vec::Vec<T> as core::iter::FromIterator<T>>::from_iter", "<alloc::vec::Vec<T> as core::iter::FromIterator<T>>::from_iter", "from_iter"],
    ["[stack deeper than its copy]", "[stack deeper than its copy]"],
    ["libfoo.so+0x1234", "libfoo.so+0x1234"],
    ["f(int) [clone .cold]", "f"],
    ["", ""],
    [")>(<", ")>(<"],
  ]) {
    assert.deepEqual(model.shorter(name), forms, name);
  }
});

test("a label is cut so that it fits, or left out", () => {
  const measure = () => 10;
  assert.equal(model.fit("abcdef", 60, measure), "abcdef");
  assert.equal(model.fit("abcdef", 50, measure), "abcd…");
  assert.equal(model.fit("abcdef", 30, measure), "");
  assert.equal(model.fit("abc<…>::def", 60, measure), "abc…");
});

test("numbers read well and never round up to all", () => {
  assert.deepEqual(
    [1, 0.9996, 0.5, 0.0123, 0.00456, 1e-6, 0].map((part) => model.percent(part, 1)),
    ["100%", "99.9%", "50.0%", "1.2%", "0.46%", "<0.01%", "0%"],
  );
  assert.equal(model.percent(1, 0), "0%");
  assert.equal(model.count(1234567), "1,234,567");
  assert.deepEqual(
    [900, 1500, 2.5e6, 250e6, 4.714e9, 150e9, 7300e9].map(model.duration),
    ["900 ns", "2 µs", "2.5 ms", "250 ms", "4.71 s", "2 min 30 s", "2 h 1 min"],
  );
  assert.equal(model.weight(1200, "cycles"), "1,200");
  assert.equal(model.date(Date.UTC(2026, 10, 21, 10, 4)), "2026-11-21 10:04 UTC");
});

test("a selection is the same in the address as in words", () => {
  const terms = model.termsOf(new URLSearchParams("view=table&tid=7&time=1-2&tid=8"));
  assert.deepEqual(terms, [["tid", "7"], ["time", "1-2"], ["tid", "8"]]);
  assert.deepEqual(model.withTerm(terms, ["time", "3-4"]), [["tid", "7"], ["tid", "8"], ["time", "3-4"]]);
  assert.deepEqual(model.withTerm([["kernel", ""]], ["user", ""]), [["user", ""]]);
  assert.deepEqual(model.intervalOf(terms, 5e9), { from: 1e9, to: 2e9 });
  assert.deepEqual(model.intervalOf([["time", "1-"]], 5e9), { from: 1e9, to: 5e9 });
  assert.deepEqual(model.intervalTerm(250e6, 750e6), ["time", "0.2500-0.7500"]);
  assert.match("a.b<c>(int)*", new RegExp(model.exactly("a.b<c>(int)*")));
  assert.equal(model.said(["hide", model.exactly("a::b(int*)")]), "frames hidden a::b(int*)");
});

test("types of profiles are said in a few words", () => {
  assert.equal(model.shortType("process_cpu:cpu:nanoseconds:cpu:nanoseconds"), "cpu (process_cpu)");
  assert.equal(model.shortType("off_cpu:off_cpu:nanoseconds::"), "off_cpu");
  assert.equal(model.shortType("memory:alloc_space:bytes:space:bytes"), "alloc_space (memory, by space)");
  assert.deepEqual(["process_cpu:cpu:nanoseconds:cpu:nanoseconds", "off_cpu:off_cpu:nanoseconds::", "run_queue:run_queue:nanoseconds::", "run-queue:run-queue:nanoseconds::"].map(model.takersOf), ["CPUs", "threads", "threads", "threads"]);
});
