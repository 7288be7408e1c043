// Times along an axis, and what a heat map's cells select.

import assert from "node:assert/strict";
import { test } from "node:test";
import * as model from "../build/model.mjs";

test("ticks are round and say no more digits than tell them apart", () => {
  const texts = (ns, most) => model.ticksOf(ns, most).map(({ text }) => text);
  assert.deepEqual(texts(1e9, 5), ["0", "0.2 s", "0.4 s", "0.6 s", "0.8 s"]);
  assert.deepEqual(texts(12e6, 4), ["0", "5 ms", "10 ms"]);
  assert.deepEqual(texts(95e9, 4), ["0", "30 s", "60 s"]);
  assert.deepEqual(texts(3 * 3600e9, 4), ["0", "60 min", "2 h"]);
  for (const length of [1, 37, 1e3, 7e5, 3e9, 4e11, 8e14]) {
    const ticks = model.ticksOf(length, 6);
    assert.ok(ticks.length >= 2 && ticks.length <= 8 && ticks.at(-1).ns <= length, `${length}: ${JSON.stringify(ticks)}`);
    assert.equal(new Set(ticks.map(({ text }) => text)).size, ticks.length, `${length}: ${JSON.stringify(ticks)}`);
  }
  assert.deepEqual(model.ticksOf(0, 5), [{ ns: 0, text: "0" }]);
});

test("a window of the timeline is scaled about a moment, moved, and never leaves the recording", () => {
  const whole = 10e9;
  const all = { from: 0, to: whole };
  const half = model.scaled(all, 0.5, 8e9, whole);
  assert.deepEqual(half, { from: 4e9, to: 9e9 });
  assert.ok(!model.isWhole(half, whole) && model.isWhole(model.scaled(half, 2, 8e9, whole), whole));
  assert.deepEqual(model.moved(half, 1, whole), { from: 5e9, to: 10e9 });
  assert.deepEqual(model.moved(half, -9, whole), { from: 0, to: 5e9 });
  assert.deepEqual(model.around({ from: 2e9, to: 4e9 }, whole), { from: 1.8e9, to: 4.2e9 });
  assert.deepEqual([0, 250, 1000].map((x) => model.timeAt(half, x, 1000)), [4e9, 5.25e9, 9e9]);
  assert.equal(model.timeAt(half, 5, 0), 29e9, "an element without a width divides nothing by zero");
  const narrow = model.scaled(half, 1e-12, 5e9, whole);
  assert.ok(narrow.to - narrow.from > 0 && narrow.from <= 5e9 && narrow.to >= 5e9, JSON.stringify(narrow));
  assert.deepEqual(model.ticksOf(1e9, 5, 4.1e9).map(({ text }) => text), ["4.2 s", "4.4 s", "4.6 s", "4.8 s", "5.0 s"]);
});

/** Four seconds in four rows; the recording starts 0.25 s into the first. */
const map = {
  event: "cpu-clock", unit: "ns", column_ns: 1e9, first_ns: -0.25e9, row_ns: 0.25e9, untimed: 0, has_latency: false,
  columns: [[0, 1, 0, 0], [0, 4, 0, 0], [0, 4, 0, 100], [0, 4, 0, 0]],
};

test("cells select their seconds and their part of each", () => {
  const cells = (a, b) => model.cellsBetween(map, a, b);
  assert.deepEqual(cells([3, 1], [-5, 9]), { column: 0, toColumn: 3, row: 1, toRow: 3 });
  assert.equal(model.weightIn(map, cells([0, 1], [3, 1])), 13);
  const term = (a, b) => model.termOf(map, cells(a, b), 3.5e9)[1];
  assert.equal(term([0, 1], [3, 1]), "@0.25-0.5", "a line through all seconds");
  assert.equal(term([1, 3], [2, 3]), "0.75-2.75@0.75-1");
  assert.equal(term([0, 0], [1, 3]), "0-1.75", "whole seconds");
  assert.equal(term([2, 0], [3, 1]), "1.75-3.5@0-0.5");
  const { shades, most } = model.shadesOf(map);
  assert.equal(most, 100);
  assert.ok(shades[1] > 0.1 && shades[1] < shades[5] && shades[11] === 1 && shades[0] === 0);
});

test("lengths of waits select their time alone", () => {
  const waits = { ...map, unit: "waits", first_ns: 0, rows_from_ns: [1000, 1414, 2000, 2828] };
  const cells = model.cellsBetween(waits, [1, 2], [1, 2]);
  assert.deepEqual(model.rangeOf(waits, cells), { from: 2000, to: 2828 });
  assert.deepEqual(model.termOf(waits, cells, 4e9), ["time", "1-2"]);
});

test("a part of each second is a selection like any other", () => {
  const terms = [["comm", "x"], ["time", "2-4@0.1-0.35"]];
  assert.deepEqual(model.intervalOf(terms, 9e9), { from: 2e9, to: 4e9 });
  assert.deepEqual(model.partOf(terms), { from: 0.1, to: 0.35 });
  assert.equal(model.partOf([["time", "2-4"]]), undefined);
  assert.equal(model.intervalOf([["time", "@0.1-0.2"]], 9e9), undefined);
  assert.equal(model.said(terms[1]), "time 2-4 s, 0.1-0.35 s of each second");
  assert.equal(model.said(["time", "@0.1-0.2"]), "0.1-0.2 s of each second");
});
