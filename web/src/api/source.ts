// Where the page's answers come from: a server that is asked, or the file itself.

import { callersAndCallees } from "../model/around";
import { decode } from "../model/decode";
import { ask, RecordingClient, recordings, type Parameters } from "./client";
import type { Packet } from "./packet";
import type { RecordingEntry, ServerAbout, TreesAnswer } from "./types";

export interface Source {
  readonly recordings: readonly RecordingEntry[];
  /** Version of plumb. */
  readonly plumb: string;
  /** Of a file: the view that it opens on, and its title. It holds one selection. */
  readonly file?: { readonly view: string; readonly title: string };
  client(id: string, selection: Parameters, signal: AbortSignal): RecordingClient;
}

export async function serverSource(about: ServerAbout): Promise<Source> {
  return {
    recordings: await recordings(),
    plumb: about.plumb,
    client: (id, selection, signal) => new RecordingClient(id, selection, signal, (path, parameters) => ask(`/api/v1/recordings${path}`, parameters, signal)),
  };
}

export function fileSource(packet: Packet): Source {
  const { recordings, plumb, view, title } = packet.head;
  return {
    recordings,
    plumb,
    file: { view, title },
    client: (id, _, signal) => new FileClient(id, [], signal, (path, parameters) => Promise.resolve(answer(packet, path, parameters))),
  };
}

/** What a file has no answer to, its plumb may have. */
function answer(packet: Packet, path: string, parameters: Parameters): Response {
  const words = parameters.filter(([name]) => name === "direction" || name === "name").map(([name, value]) => `${name}=${value}`);
  // There is one comparison, of the new side, whichever recording is looked at.
  path = path.replace(/^\/\d+(?=\/diff)/, "/0");
  const key = words.length === 0 ? path : `${path}?${words.join("&")}`;
  const found = packet.answers.get(key);
  if (found instanceof Uint8Array) return new Response(found as Uint8Array<ArrayBuffer>);
  if (found !== undefined) throw new Error(found);
  const name = packet.head.recordings[Number(path.split("/")[1])]?.name ?? "FILE";
  throw new Error(`This file does not hold that; to see it: plumb open ${name}`);
}

/** A flame graph knows callers and callees of every function. */
class FileClient extends RecordingClient {
  override async callersAndCallees(name: string): Promise<TreesAnswer> {
    const { kept_samples, kept_weight, event, unit, samples, weight } = (await this.about()).selected;
    const { frames, tree } = decode(await this.flame());
    return { event, unit, samples, weight, kept_samples, kept_weight, trees: callersAndCallees(frames, tree, name) };
  }
}
