// Where the page's answers come from: a server that is asked, or the file itself.

import { callersAndCallees } from "../model/around";
import { decode } from "../model/decode";
import { ask, openFile, RecordingClient, recordings, type Parameters } from "./client";
import type { Packet } from "./packet";
import type { RecordingAbout, RecordingEntry, ServerAbout, TreesAnswer } from "./types";

export interface Source {
  readonly recordings: readonly RecordingEntry[];
  /** Link to an editor with `{file}` and `{line}`, empty if there is none. */
  readonly editor: string;
  /** Version of plumb. */
  readonly plumb: string;
  /** Of a file: the view that it opens on, and its title. It holds one selection. */
  readonly file?: { readonly view: string; readonly title: string };
  /** Words that stay in the address. */
  readonly words?: Parameters;
  /** Opens a file of this machine as another recording; absent where nothing can. */
  open?(file: File): Promise<RecordingEntry>;
  /** Set if the recording is not one of those that the server was started with: where it is kept. */
  readonly note?: string;
  client(id: string, selection: Parameters, signal: AbortSignal): RecordingClient;
}

export async function serverSource(about: ServerAbout): Promise<Source> {
  const { recordings: all, editor = "" } = await recordings();
  return {
    recordings: all,
    editor,
    plumb: about.plumb,
    open: (file) => openFile("/api/v1/recordings", file),
    client: (id, selection, signal) => new RecordingClient(id, selection, signal, (path, parameters) => ask(`/api/v1/recordings${path}`, parameters, signal)),
  };
}

/** A file that was opened on the page of a store. */
export async function openedSource(about: ServerAbout, id: string): Promise<Source> {
  const facts = (await (await ask(`${OPENED}/${encodeURIComponent(id)}`, [], undefined)).json()) as RecordingAbout;
  const { name, command, start_unix_ns, duration_ns, selected } = facts;
  return {
    recordings: [{ id, name, command, start_unix_ns, duration_ns, samples: selected.samples }],
    editor: "",
    plumb: about.plumb,
    words: [["opened", id]],
    note: `${name} is not in the store. The server keeps it in memory until nobody has looked at it for an hour. To store it: plumb push ${name}`,
    client: (_, selection, signal) => new OpenedClient(id, selection, signal, (path, parameters) => ask(`${OPENED}${path}`, parameters, signal)),
  };
}

/** Opens a file beside a store; returns the address that shows it. */
export async function openBesideStore(file: File): Promise<string> {
  const { id } = await openFile(OPENED, file);
  return `${location.pathname}?${new URLSearchParams({ opened: id })}`;
}

const OPENED = "/api/v1/opened";

class OpenedClient extends RecordingClient {
  protected override readonly base: string = OPENED;
}

export function fileSource(packet: Packet): Source {
  const { recordings, plumb, view, title } = packet.head;
  return {
    recordings,
    // Whoever reads the file rarely has its sources.
    editor: "",
    plumb,
    file: { view, title },
    client: (id, _, signal) => new FileClient(id, [], signal, (path, parameters) => Promise.resolve(answer(packet, path, parameters))),
  };
}

/** What a file has no answer to, its plumb may have. */
function answer(packet: Packet, path: string, parameters: Parameters): Response | Uint8Array {
  const words = parameters.filter(([name]) => ["direction", "name", "order", "by"].includes(name)).map(([name, value]) => `${name}=${value}`);
  // There is one comparison, of the new side, whichever recording is looked at.
  path = path.replace(/^\/\d+(?=\/diff)/, "/0");
  const key = words.length === 0 ? path : `${path}?${words.join("&")}`;
  const found = packet.answers.get(key);
  if (found instanceof Uint8Array) return found;
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
