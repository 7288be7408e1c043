// Makes pages without the command: the payload that crates/documents/src/flame/payload.rs writes, the packet around it, and made-up profiles.

import { readFile } from "node:fs/promises";
import { deflateRawSync } from "node:zlib";

const KINDS = ["root", "group", "program", "inlined", "library", "jit", "kernel", "missing", "fault", "process", "interrupt"];

/**
 * Bytes of a payload. `stacks` are `[frames from the root, samples]`, a frame being `kind:name` or
 * `kind:name:dso:file:line`.
 */
export function payload(stacks, facts = {}) {
  const keys = new Map();
  const root = { children: new Map(), self: 0, line: 0 };
  for (const [frames, samples] of stacks) {
    let at = root;
    for (const text of frames) {
      const [kind, name, dso = "", file = "", line = "0"] = text.split("|");
      const key = [name, KINDS.indexOf(kind), dso, file].join("\0");
      keys.set(key, { name, kind: KINDS.indexOf(kind), dso, file });
      let child = at.children.get(key);
      if (!child) at.children.set(key, (child = { children: new Map(), self: 0, line: Number(line) }));
      at = child;
    }
    at.self += samples;
  }
  const order = [...keys.keys()].sort((a, b) => (a < b ? -1 : 1));
  const number = new Map(order.map((key, i) => [key, i + 1]));
  const frames = [{ name: "all", kind: 0, dso: "", file: "" }, ...order.map((key) => keys.get(key))];
  const boxes = [];
  const walk = (node, depth, frame) => {
    boxes.push({ depth, frame, self: node.self, line: node.line });
    for (const [key, child] of [...node.children].sort(([a], [b]) => (a < b ? -1 : 1))) {
      walk(child, depth + 1, number.get(key));
    }
  };
  walk(root, 0, 0);
  return encode(frames, boxes, facts);
}

function encode(frames, boxes, facts) {
  const strings = [...new Set(["", ...frames.flatMap(({ name, dso, file }) => [name, dso, file])])];
  const index = new Map(strings.map((text, i) => [text, i]));
  const samples = boxes.reduce((sum, box) => sum + box.self, 0);
  const header = {
    format: 1,
    title: "test",
    samples,
    recorded: samples,
    complete: samples,
    lost: 0,
    unit: "ns",
    weighs: "CPU time",
    each: 1001001,
    frames: frames.length,
    boxes: boxes.length,
    ...facts,
    strings,
  };
  const bytes = [...new TextEncoder().encode(JSON.stringify(header)), 10];
  const column = (values) => {
    for (let value of values) {
      for (; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) + 128);
      bytes.push(value);
    }
  };
  for (const part of ["name", "dso", "file"]) column(frames.map((frame) => index.get(frame[part])));
  column(frames.map((frame) => frame.kind));
  column(boxes.map((box, i) => (i === 0 ? 0 : boxes[i - 1].depth + 1 - box.depth)));
  column(boxes.map((box) => box.frame));
  column(boxes.map((box) => box.self));
  column(boxes.map((box) => box.line));
  return Uint8Array.from(bytes);
}

/** A payload that the command wrote. */
export const written = (name) => readFile(new URL(`../testdata/${name}`, import.meta.url)).then((bytes) => Uint8Array.from(bytes));

/** The committed page, or the one of another directory, with this payload in it: of a recording that has nothing else, or of a comparison. */
export async function page(bytes, title = "test", dist = new URL("../dist/", import.meta.url)) {
  const facts = JSON.parse(new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(10))));
  const text = (value) => new TextEncoder().encode(JSON.stringify(value));
  const command = facts.command === undefined ? [] : [facts.command];
  const entry = { id: "0", name: "recording", command, start_unix_ns: 0, duration_ns: 1e9, samples: facts.samples };
  const event = facts.event ?? "cpu-clock";
  const selected = { event, unit: "ns", samples: facts.recorded, weight: 0, kept_samples: facts.samples, kept_weight: 0 };
  const about = {
    ...entry,
    recorder: "plumb", host: "", kernel: "", arch: "", cpus: 1, target_cpu_ns: null, recorder_cpu_ns: null, frequency_hz: null,
    lost_samples: facts.lost, damaged_records: 0, warnings: facts.warnings ?? [], lacks: [],
    events: [{ name: event, unit: "ns", samples: facts.samples, weight: 0, is_clock: true }],
    selected: { ...selected, coverage_percent: null, complete_percent: facts.complete === undefined ? null : (100 * facts.complete) / facts.samples, cut_causes: [], options: facts.filters ?? "" },
  };
  const answers = [
    ["/0", text(about)],
    ["/0/timeline", text({ duration_ns: 1e9, bin_ns: 1e9, aggregated: false, rows: [], threads_left_out: 0 })],
    ["/0/flame", bytes],
  ];
  if (facts.diff) {
    const change = { value: facts.diff.values, share: [1, 1], difference: facts.diff.values[1] - facts.diff.values[0], low: 0, high: 0, q: 1, mark: "noise" };
    const side = (name) => ({ name, samples: 1, weight: 1 });
    const [base, next] = facts.diff.names.map(side);
    answers.push(["/0/diff", text({ unit: "ns", alpha: 0.05, evidence: "single", base, new: next, all: change, rows: [], rows_left_out: 0 })]);
    answers.push(["/0/diff/flame", bytes]);
  }
  const head = { format: 1, plumb: "0", recordings: [entry], view: facts.diff ? "diff" : "flame", title: facts.title };
  const line = text({ ...head, answers: answers.map(([path, { length }]) => ({ path, bytes: length })) });
  const packet = Buffer.concat([line, Buffer.from("\n"), ...answers.map(([, body]) => body)]);
  const template = await readFile(new URL("offline.html", dist), "utf8");
  const data = deflateRawSync(packet).toString("base64");
  return template.replace("{{title}}", () => title).replace("{{data}}", () => data);
}

/** Numbers that look random and are the same in every run. */
export function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** A made-up profile of about `boxes` boxes, `functions` functions and stacks up to 60 deep. */
export function large(boxes, functions = 4000) {
  const next = random(1);
  const kinds = ["program", "program", "program", "inlined", "library", "kernel"];
  const pick = () => {
    const i = Math.floor(next() ** 2 * functions);
    const kind = kinds[i % kinds.length];
    return `${kind}|ns${i % 37}::Class${i % 211}<int, std::allocator<T${i % 13}> >::method_${i}(char const*, unsigned long)|/usr/lib/lib${i % 23}.so|src/file${i % 97}.cpp|${i % 900}`;
  };
  const stacks = [];
  let path = ["program|main", "program|run"];
  for (let made = 0; made < boxes; ) {
    path = path.slice(0, 2 + Math.floor(next() ** 0.5 * (path.length - 2)));
    const grow = 1 + Math.floor(next() * 14);
    for (let i = 0; i < grow && path.length < 60; i++, made++) path.push(pick());
    stacks.push([[...path], 1 + Math.floor(1 / (next() + 0.001))]);
  }
  return stacks;
}
