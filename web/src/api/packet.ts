// Reads the answers that a page in one file has inside: one line of JSON, then the bodies.
//
// The other half of this format is crates/documents/src/packet.rs.

import { unpack } from "../model/decode";
import type { RecordingEntry } from "./types";

interface Head {
  readonly format: number;
  readonly plumb: string;
  readonly recordings: readonly RecordingEntry[];
  readonly view: string;
  readonly title: string;
  readonly answers: readonly { readonly path: string; readonly bytes?: number; readonly error?: string }[];
}

export interface Packet {
  readonly head: Head;
  /** Bodies by path, or why there is none. */
  readonly answers: ReadonlyMap<string, Uint8Array | string>;
}

/** The packet of this page, if it is one in a file. */
export async function packetOf(page: Document): Promise<Packet | undefined> {
  const data = page.getElementById("packet")?.textContent;
  if (data == null) return undefined;
  return split(data === "" ? new Uint8Array() : await unpack(data));
}

function split(bytes: Uint8Array): Packet {
  const newline = bytes.indexOf(10);
  if (newline < 0) throw new Error("this file is damaged: its data has no header");
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(0, newline))) as Head;
  if (head.format !== 1) throw new Error(`this file's data has format ${head.format}, its page reads 1`);
  const answers = new Map<string, Uint8Array | string>();
  let at = newline + 1;
  for (const { path, bytes: length, error } of head.answers) {
    if (length === undefined) {
      answers.set(path, error ?? "");
      continue;
    }
    if (at + length > bytes.length) throw new Error("this file is damaged: its data ends early");
    answers.set(path, bytes.subarray(at, at + length));
    at += length;
  }
  return { head, answers };
}
