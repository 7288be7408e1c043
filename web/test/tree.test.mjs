// The tree, what can be seen of it, and what is under the pointer.

import assert from "node:assert/strict";
import { test } from "node:test";
import { buildTree, contains, decode, find, hit, isRecursive, leftHeavy, matching, pathTo, pivot, spanOf, visible, withoutRecursion } from "../build/model.mjs";
import { large, payload, random } from "./payload.mjs";

const p = (text) => text.split(" ").map((name) => `program|${name}`);
const profile = (stacks) => decode(payload(stacks.map(([text, samples]) => [p(text), samples])));
const named = ({ frames, tree }, name) => [...tree.frame.keys()].filter((box) => frames.name[tree.frame[box]] === name);

test("boxes are merged, sorted by name and as wide as what is in them", () => {
  const { frames, tree } = profile([["main b", 3], ["main a c", 2], ["main", 1], ["main b d", 4]]);
  const shown = [...tree.frame.keys()].map((box) => {
    const end = tree.start[box] + tree.total[box];
    return [frames.name[tree.frame[box]], tree.depth[box], ...[tree.start[box], end].map((x) => x / 1001001)];
  });
  assert.deepEqual(shown, [["all", 0, 0, 10], ["main", 1, 0, 10], ["a", 2, 0, 2], ["c", 3, 0, 2], ["b", 2, 2, 9], ["d", 3, 2, 6]]);
  assert.deepEqual([...tree.samples], [10, 10, 2, 2, 7, 4]);
  assert.deepEqual(pathTo(tree, 3), [0, 1, 2, 3]);
  assert.ok(contains(tree, 1, 5) && contains(tree, 4, 4) && !contains(tree, 2, 4));
});

test("a tree that skips a level or has no root is refused", () => {
  const columns = (depth) => ({
    depth: Uint32Array.from(depth),
    frame: new Uint32Array(depth.length),
    self: new Float64Array(depth.length),
    selfSamples: new Float64Array(depth.length),
    line: new Uint32Array(depth.length),
  });
  for (const depth of [[], [1], [0, 2], [0, 1, 0], [0, 1, 3]]) assert.throws(() => buildTree(columns(depth)));
  assert.equal(buildTree(columns([0, 1, 2, 1])).bottom[0], 2);
});

test("sums, callers and subtrees are those of the stacks, whether samples weigh the same or not", () => {
  const { tree } = decode(payload(large(3000, 60)));
  const { size, depth, frame, self, selfSamples, line } = tree;
  const scaled = buildTree({ depth, frame, self, selfSamples: 1001001, line });
  const named = buildTree({ depth, frame, self, selfSamples, line });
  for (const one of [tree, scaled, named]) {
    for (let box = 0; box < size; box++) {
      let end = box + 1;
      while (end < size && depth[end] > depth[box]) end++;
      const below = (column) => column.subarray(box, end).reduce((sum, value) => sum + value, 0);
      let up = box - 1;
      while (up >= 0 && depth[up] >= depth[box]) up--;
      assert.deepEqual([one.parent[box], one.end[box], one.bottom[box]], [up, end, Math.max(...depth.subarray(box, end))]);
      assert.deepEqual([one.total[box], one.samples[box], one.selfSamples[box]], [below(self), below(selfSamples), self[box] / 1001001]);
      const left = up < 0 ? 0 : [...tree.rows[depth[box]]].filter((other) => other > up && other < box).reduce((sum, other) => sum + one.total[other], one.start[up]);
      assert.equal(one.start[box], left);
    }
  }
});

test("of a large profile only what can be seen is drawn, and all of it", () => {
  const { tree } = decode(payload(large(20000)));
  const width = 800;
  for (const box of [0, tree.rows[3][0], tree.rows[9][40]]) {
    const span = spanOf(tree, box);
    const scale = width / (span.to - span.from);
    for (let depth = 0; depth < tree.rows.length; depth++) {
      const drawn = new Set();
      let crowds = 0;
      visible(tree, depth, span, width, (drawnBox, left, right) => {
        assert.ok(left >= 0 && right <= width + 1e-6 && right >= left);
        if (drawnBox < 0) crowds++;
        else drawn.add(drawnBox);
      });
      const wide = [...tree.rows[depth]].filter((one) => {
        const end = tree.start[one] + tree.total[one];
        return tree.total[one] * scale >= 0.5 && end > span.from && tree.start[one] < span.to;
      });
      assert.deepEqual([...drawn], wide);
      assert.ok(crowds <= 2 * width, `${crowds} crowds in row ${depth}`);
    }
  }
});

test("crowds of narrow boxes cover what they stand for", () => {
  const stacks = Array.from({ length: 2000 }, (_, i) => [`main f${String(i).padStart(4, "0")}`, 1]);
  const { tree } = profile(stacks);
  let covered = 0;
  visible(tree, 2, spanOf(tree, 0), 100, (box, left, right) => {
    assert.equal(box, -1);
    covered += right - left;
  });
  assert.ok(covered > 99 && covered < 101, String(covered));
});

test("the box under a point is the one that is drawn there", () => {
  const { tree } = decode(payload(large(3000)));
  const next = random(7);
  for (let i = 0; i < 2000; i++) {
    const depth = Math.floor(next() * tree.rows.length);
    const at = next() * tree.total[0];
    const expected = [...tree.rows[depth]].find((box) => tree.start[box] <= at && at < tree.start[box] + tree.total[box]);
    assert.equal(hit(tree, depth, at), expected ?? -1);
  }
  assert.equal(hit(tree, 9999, 0), -1);
});

test("what matches inside of a match is not counted again", () => {
  const made = profile([["main rec rec rec leaf", 4], ["main rec other", 3], ["main leaf", 2], ["main", 1]]);
  const { frames, tree } = made;
  const weight = (text, root = 0) => find(tree, matching(frames, { text, regex: false }), root).weight / 1001001;
  assert.equal(weight("rec"), 7);
  assert.equal(weight("REC"), 7);
  assert.equal(weight("leaf"), 6);
  assert.equal(weight("e"), 9);
  assert.equal(weight("no such"), 0);
  // The root is no function, so that `all` finds none.
  assert.equal(weight("all"), 0);
  const outer = named(made, "rec")[0];
  assert.equal(weight("leaf", outer), 4);
});

test("a search is text unless it is said to be a pattern", () => {
  const { frames } = profile([["operator()(int) Foo<a>::bar foo", 1]]);
  const names = (text, regex) => {
    const found = matching(frames, { text, regex });
    return frames.name.filter((_, i) => found[i] === 1);
  };
  assert.deepEqual(names("operator()(", false), ["operator()(int)"]);
  assert.deepEqual(names("foo", false), ["Foo<a>::bar", "foo"]);
  assert.deepEqual(names("^foo$", true), ["foo"]);
  assert.deepEqual(names("^Foo", true), ["Foo<a>::bar"]);
  assert.throws(() => names("(", true), SyntaxError);
});

test("all calls of a function: callees and callers have the same total, recursion counts once", () => {
  const { frames, tree } = profile([
    ["main a f x", 1],
    ["main b f x", 2],
    ["main b f f y", 4],
    ["main b c f", 8],
    ["main c", 16],
  ]);
  const frame = frames.name.indexOf("f");
  const { callees, callers } = pivot(tree, frame);
  const show = (t) => [...t.frame.keys()].map((box) => `${" ".repeat(t.depth[box])}${frames.name[t.frame[box]]} ${t.samples[box]}`);
  assert.deepEqual(show(callees), ["f 15", " f 4", "  y 4", " x 3"]);
  assert.deepEqual(show(callers), ["f 15", " a 1", "  main 1", " b 6", "  main 6", " c 8", "  b 8", "   main 8"]);
  assert.equal(callees.total[0], callers.total[0]);
});

test("all calls of every function add up to what a search for it finds", () => {
  const { frames, tree } = decode(payload(large(3000, 60)));
  for (let frame = 1; frame < frames.name.length; frame++) {
    const { callees, callers } = pivot(tree, frame);
    const marks = Uint8Array.from(frames.name, (_, i) => (i === frame ? 1 : 0));
    const { weight } = find(tree, marks);
    assert.equal(Math.round(callees.total[0]), Math.round(weight));
    assert.equal(Math.round(callers.total[0]), Math.round(weight));
  }
});

test("by weight the same boxes stand in another order", () => {
  const { frames, tree } = profile([["main a", 2], ["main b y", 3], ["main b z", 4], ["main c", 2], ["main", 1]]);
  const heavy = leftHeavy(tree);
  const shown = (one) => [...one.frame.keys()].map((box) => [frames.name[one.frame[box]], one.depth[box], one.samples[box]]);
  assert.deepEqual(shown(heavy), [["all", 0, 12], ["main", 1, 12], ["b", 2, 7], ["z", 3, 4], ["y", 3, 3], ["a", 2, 2], ["c", 2, 2]]);
  const sorted = (one) => shown(one).map(String).sort();
  assert.deepEqual(sorted(heavy), sorted(tree));
});

test("recursion is put together: direct, or of one function whatever it goes through", () => {
  const { frames, tree } = profile([["main a b a b", 3], ["main a", 1], ["main c c d", 5]]);
  const shown = (tree) =>
    [...tree.frame.keys()].map((box) => `${" ".repeat(tree.depth[box])}${frames.name[tree.frame[box]]} ${tree.selfSamples[box]}/${tree.samples[box]}`);
  assert.deepEqual(shown(withoutRecursion(tree, -1)), ["all 0/9", " main 0/9", "  a 1/4", "   b 0/3", "    a 0/3", "     b 3/3", "  c 0/5", "   d 5/5"]);
  const a = frames.name.indexOf("a");
  assert.deepEqual(shown(withoutRecursion(tree, a)).slice(0, 4), ["all 0/9", " main 0/9", "  a 1/4", "   b 3/3"]);
  assert.deepEqual(["a", "c", "d", "main"].map((name) => isRecursive(tree, frames.name.indexOf(name))), [true, true, false, false]);
});

/** A tree of `[depth, frame, self, from, length]`, all times in seconds. */
const timed = (rows) =>
  buildTree({
    depth: Uint32Array.from(rows, ([depth]) => depth),
    frame: Uint32Array.from(rows, ([, frame]) => frame),
    self: Float64Array.from(rows, ([, , self]) => self),
    selfSamples: Float64Array.from(rows, ([, , self]) => self),
    line: new Uint32Array(rows.length),
    times: { from: Float64Array.from(rows, ([, , , from]) => from), length: Float64Array.from(rows, ([, , , , length]) => length) },
  });
const inTime = (tree) => [...tree.frame.keys()].map((box) => [tree.depth[box], tree.frame[box], tree.self[box], tree.times.from[box], tree.times.length[box]]);

test("recursion is put together in the order of time, where boxes stay apart", () => {
  // all, main 1; walk 2 calls walk, which calls leaf 3; then walk calls leaf again.
  const direct = timed([[0, 0, 0, 0, 9], [1, 1, 1, 0, 9], [2, 2, 2, 1, 8], [3, 2, 1, 2, 4], [4, 3, 3, 3, 3], [3, 3, 2, 6, 2]]);
  assert.deepEqual(inTime(withoutRecursion(direct, -1)), [[0, 0, 0, 0, 9], [1, 1, 1, 0, 9], [2, 2, 3, 1, 8], [3, 3, 3, 3, 3], [3, 3, 2, 6, 2]]);
  assert.deepEqual(withoutRecursion(direct, 3).total, direct.total, "what is not recursive stays as it is");
  // walk 2 calls visit 4, which calls walk in its middle, which calls leaf 3: the leaf cuts the visit in two.
  const through = timed([[0, 0, 0, 0, 9], [1, 2, 1, 0, 9], [2, 4, 2, 1, 8], [3, 5, 1, 1, 2], [3, 2, 1, 3, 3], [4, 3, 2, 4, 2], [3, 5, 2, 7, 2]]);
  const merged = withoutRecursion(through, 2);
  assert.deepEqual(inTime(merged), [[0, 0, 0, 0, 9], [1, 2, 2, 0, 9], [2, 4, 2, 1, 6], [3, 5, 1, 1, 2], [2, 3, 2, 4, 2], [2, 4, 0, 7, 2], [3, 5, 2, 7, 2]]);
  assert.equal(merged.total[0], through.total[0]);
});

test("recursion is put together in a difference; what comes together of different verdicts has none", () => {
  const rows = [[0, 0, 0, 0, 0], [1, 1, 10, 30, 1], [2, 1, 5, 5, 0], [3, 2, 0, 20, 3], [2, 2, 8, 8, 0], [2, 3, 4, 0, 4]];
  const column = (at, Type) => Type.from(rows, (row) => row[at]);
  const [depth, frame] = [0, 1].map((at) => column(at, Uint32Array));
  const sides = { base: column(2, Float64Array), next: column(3, Float64Array), mark: column(4, Uint8Array) };
  const tree = buildTree({ depth, frame, self: new Float64Array(6), selfSamples: new Float64Array(6), line: new Uint32Array(6), sides });
  const merged = withoutRecursion(tree, -1);
  assert.deepEqual([...merged.frame], [0, 1, 2, 3]);
  assert.deepEqual([...merged.sums.base], [27, 27, 8, 4]);
  assert.deepEqual([...merged.sums.next], [63, 63, 28, 0]);
  // The outer call's own verdict; new and within noise: none; gone.
  assert.deepEqual([...merged.sides.mark], [0, 1, 0, 4]);
});
