// Reads what `plumb flame` put into the page: one line of JSON (names and facts), then columns of varints.
//
// The other half of this format is crates/documents/src/flame/payload.rs; testdata/small.payload holds them together.

import { widths, type DiffFacts, type Sides } from "./diff";
import { buildTree, type Columns, type Tree } from "./tree";

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
  /** Number of boxes that are too small to be in the picture. */
  readonly leftOut: number;
  readonly frames: Frames;
  readonly tree: Tree;
}

interface Header extends Facts {
  readonly format: number;
  readonly strings: readonly string[];
  readonly frames: number;
  readonly boxes: number;
  readonly leftOut?: number;
  /** Weight of one sample, if all weigh the same: then there is no column of weights. */
  readonly each?: number;
  /** Whether boxes are in the order of time, with columns of their times. */
  readonly timed?: boolean;
}

/** Base64 of deflated bytes, as it stands in the page. */
export async function unpack(text: string): Promise<Uint8Array> {
  const inflate = new DecompressionStream("deflate-raw");
  const writer = inflate.writable.getWriter();
  // Damaged data fails where it is read, below.
  writer.write(fromBase64(text.trim())).catch(() => undefined);
  writer.close().catch(() => undefined);
  return new Uint8Array(await new Response(inflate.readable).arrayBuffer());
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const native = (Uint8Array as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> }).fromBase64;
  if (native) return native(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

export function decode(bytes: Uint8Array): Profile {
  const newline = bytes.indexOf(10);
  if (newline < 0) throw new Error("the page's data has no header");
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(0, newline))) as Header;
  if (header.format !== 1) throw new Error(`the page's data has format ${header.format}, this page reads 1`);
  const input = new Varints(bytes, newline + 1);
  const frames = decodeFrames(input, header);
  return { facts: header, leftOut: header.leftOut ?? 0, frames, tree: buildTree(decodeColumns(input, header)) };
}

function decodeFrames(input: Varints, header: Header): Frames {
  const column = <T>(map: (value: number) => T) => Array.from(input.integers(header.frames), map);
  const text = () => column((value) => header.strings[value] ?? "");
  return { name: text(), dso: text(), file: text(), kind: column((value) => KINDS[value] ?? "program") };
}

function decodeColumns(input: Varints, header: Header): Columns {
  const { boxes: count, each } = header;
  // A box closes as many levels as lie between it and the box before; 0 is a first callee.
  let level = -1;
  const depth = input.integers(count);
  for (let box = 0; box < count; box++) depth[box] = level += 1 - depth[box];
  const frame = input.integers(count, header.frames, "frame");
  // Weights that are multiples of one need no second column; those of a differential picture are made of its sides.
  const isScaled = each !== undefined && each > 0 && !header.diff;
  const samples = input.numbers(count, isScaled ? each : 1);
  const self = each === undefined ? input.numbers(count) : isScaled ? samples : new Float64Array(count);
  const own = { self, selfSamples: isScaled ? each : samples };
  const line = input.integers(count);
  if (header.timed) return { depth, frame, ...own, line, times: { from: input.numbers(count), length: input.numbers(count) } };
  if (!header.diff) return { depth, frame, ...own, line };
  const sides: Sides = { base: input.numbers(count), next: input.numbers(count), mark: Uint8Array.from(input.integers(count)) };
  return { depth, frame, selfSamples: own.selfSamples, self: widths(sides, "changes"), line, sides };
}

/** LEB128 numbers up to 2^53. */
class Varints {
  constructor(
    private readonly bytes: Uint8Array,
    private at: number,
  ) {}

  // One loop for each kind of array, and no call in it: what runs once for each of hundreds of thousands of boxes is over before a compiler
  // has made more of it. Past the end of the data there is `undefined`, which is no number of several bytes.

  /** Numbers below a limit, which is how many there are of what they count. */
  integers(count: number, limit = 2 ** 32, what = "number"): Uint32Array {
    const { bytes } = this;
    const values = new Uint32Array(count);
    let { at } = this;
    for (let i = 0; i < count; i++) {
      let byte = bytes[at++];
      let value = byte & 127;
      for (let scale = 128; byte >= 128; scale *= 128) {
        byte = bytes[at++];
        value += (byte & 127) * scale;
      }
      if (value >= limit) throw new Error(`the page's data has no ${what} ${value}`);
      values[i] = value;
    }
    this.reach(at);
    return values;
  }

  /** Numbers that may be larger, each times `scale`. */
  numbers(count: number, scale = 1): Float64Array {
    const { bytes } = this;
    const values = new Float64Array(count);
    let { at } = this;
    for (let i = 0; i < count; i++) {
      let byte = bytes[at++];
      let value = byte & 127;
      for (let unit = 128; byte >= 128; unit *= 128) {
        byte = bytes[at++];
        value += (byte & 127) * unit;
      }
      values[i] = value * scale;
    }
    this.reach(at);
    return values;
  }

  private reach(at: number): void {
    if (at > this.bytes.length) throw new Error("the page's data ends early");
    this.at = at;
  }
}
