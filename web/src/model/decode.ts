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
  for (const frame of tree.frame) {
    if (frame >= header.frames) throw new Error(`the page's data has no frame ${frame}`);
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
  const depth = Uint32Array.from(input.column(count, (closed) => (level += 1 - closed)));
  const frame = Uint32Array.from(input.column(count, (value) => value));
  const selfSamples = Float64Array.from(input.column(count, (value) => value));
  const each = header.each;
  const self =
    each === undefined
      ? Float64Array.from(input.column(count, (value) => value))
      : selfSamples.map((samples) => samples * each);
  const line = Uint32Array.from(input.column(count, (value) => value));
  if (!header.diff) return { depth, frame, selfSamples, self, line };
  const sides: Sides = {
    base: Float64Array.from(input.column(count, (value) => value)),
    next: Float64Array.from(input.column(count, (value) => value)),
    mark: Uint8Array.from(input.column(count, (value) => value)),
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

  private next(): number {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      if (this.at >= this.bytes.length) throw new Error("the page's data ends early");
      const byte = this.bytes[this.at++];
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  }
}
