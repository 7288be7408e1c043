// Reads what `plumb flame` put into the page: one line of JSON (names and facts), then columns of varints.
//
// The other half of this format is crates/report/src/flame/payload.rs; testdata/small.payload holds them together.

import { widths, type DiffFacts, type Sides } from "./diff";
import { buildTree, type Tree } from "./tree";

/** What a box stands for. The order is the file's: the numbers are stored. */
export const KINDS = [
  "root",
  "group",
  "program",
  "inlined",
  "library",
  "jit",
  "kernel",
  "missing",
  "fault",
  "process",
  "interrupt",
] as const;
export type Kind = (typeof KINDS)[number];

/** Frames as columns. They are in the order of their names, so comparing rows compares names. */
export interface Frames {
  readonly name: readonly string[];
  readonly dso: readonly string[];
  readonly file: readonly string[];
  readonly kind: readonly Kind[];
}

/** Facts about the recording; what is not known is absent. */
export interface Facts {
  readonly title: string;
  readonly command?: string;
  /** Samples in the picture, and in the recording before filters. */
  readonly samples: number;
  readonly recorded: number;
  /** Samples in the picture whose stack reaches its root. */
  readonly complete?: number;
  readonly lost: number;
  readonly event?: string;
  readonly unit: string;
  /** What weights are of: "CPU time", or the event. */
  readonly weighs?: string;
  readonly hz?: number;
  readonly durationNs?: number;
  readonly startMs?: number;
  readonly host?: string;
  readonly recorder?: string;
  readonly filters?: string;
  readonly icicle?: boolean;
  readonly warnings?: readonly string[];
  /** Of a differential picture. */
  readonly diff?: DiffFacts;
}

export interface Profile {
  readonly facts: Facts;
  readonly frames: Frames;
  readonly tree: Tree;
}

interface Header extends Facts {
  readonly format: number;
  readonly strings: readonly string[];
  readonly frames: number;
  readonly boxes: number;
  /** Weight of one sample, if all weigh the same: then there is no column of weights. */
  readonly each?: number;
  /** Whether boxes are in the order of time, with columns of their times. */
  readonly timed?: boolean;
}

/** Base64 of deflated bytes, as it stands in the page. */
export async function unpack(text: string): Promise<Uint8Array> {
  const binary = atob(text.trim());
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

export function decode(bytes: Uint8Array): Profile {
  const newline = bytes.indexOf(10);
  if (newline < 0) throw new Error("the page's data has no header");
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(0, newline))) as Header;
  if (header.format !== 1) throw new Error(`the page's data has format ${header.format}, this page reads 1`);
  const input = new Varints(bytes, newline + 1);
  const frames = decodeFrames(input, header);
  const tree = buildTree(decodeColumns(input, header));
  for (let box = 0; box < tree.size; box++) {
    if (tree.frame[box] >= header.frames) throw new Error(`the page's data has no frame ${tree.frame[box]}`);
  }
  return { facts: header, frames, tree };
}

function decodeFrames(input: Varints, header: Header): Frames {
  const text = () => input.column(header.frames, (value) => header.strings[value] ?? "");
  return {
    name: text(),
    dso: text(),
    file: text(),
    kind: input.column(header.frames, (value) => KINDS[value] ?? "program"),
  };
}

function decodeColumns(input: Varints, header: Header) {
  const count = header.boxes;
  // A box closes as many levels as lie between it and the box before; 0 is a first callee.
  let level = -1;
  const depth = input.fill(new Uint32Array(count));
  for (let box = 0; box < count; box++) depth[box] = level += 1 - depth[box];
  const frame = input.fill(new Uint32Array(count));
  const selfSamples = input.fill(new Float64Array(count));
  const each = header.each;
  const self = each === undefined ? input.fill(new Float64Array(count)) : selfSamples.map((samples) => samples * each);
  const line = input.fill(new Uint32Array(count));
  if (header.timed) {
    const from = input.fill(new Float64Array(count));
    return { depth, frame, selfSamples, self, line, times: { from, length: input.fill(new Float64Array(count)) } };
  }
  if (!header.diff) return { depth, frame, selfSamples, self, line };
  const sides: Sides = {
    base: input.fill(new Float64Array(count)),
    next: input.fill(new Float64Array(count)),
    mark: input.fill(new Uint8Array(count)),
  };
  return { depth, frame, selfSamples, self: widths(sides, "changes"), line, sides };
}

/** LEB128 numbers up to 2^53. */
class Varints {
  constructor(
    private readonly bytes: Uint8Array,
    private at: number,
  ) {}

  column<T>(count: number, map: (value: number) => T): T[] {
    const values: T[] = [];
    for (let i = 0; i < count; i++) values.push(map(this.next()));
    return values;
  }

  /** A column into an array that has room for it. */
  fill<A extends Uint8Array | Uint32Array | Float64Array>(values: A): A {
    const { bytes } = this;
    const { length } = values;
    let at = this.at;
    for (let i = 0; i < length; i++) {
      const byte = bytes[at];
      if (byte < 128) {
        values[i] = byte;
        at++;
        continue;
      }
      // A long number, or the end of the data.
      this.at = at;
      values[i] = this.next();
      at = this.at;
    }
    this.at = at;
    return values;
  }

  private next(): number {
    // Most numbers are small.
    if (this.at < this.bytes.length && this.bytes[this.at] < 128) return this.bytes[this.at++];
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      if (this.at >= this.bytes.length) throw new Error("the page's data ends early");
      const byte = this.bytes[this.at++];
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  }
}
