// Asks the server. Errors carry the server's own sentence.

import type {
  DiffAnswer,
  ExplainAnswer,
  FunctionsAnswer,
  KernelAnswer,
  ListingAnswer,
  ProcessesAnswer,
  RecordingAbout,
  RecordingEntry,
  ServerAbout,
  TimelineAnswer,
  TreesAnswer,
} from "./types";

export type Parameters = readonly (readonly [string, string])[];

export async function ask(path: string, parameters: Parameters, signal: AbortSignal | undefined): Promise<Response> {
  const query = new URLSearchParams(parameters.map(([name, value]) => [name, value])).toString();
  let response: Response;
  try {
    response = await fetch(query === "" ? path : `${path}?${query}`, signal ? { signal } : {});
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Error("the server does not answer: it may have ended; start plumb again and reload this page");
  }
  if (response.ok) return response;
  const refusal = (await response.json().catch(() => ({}))) as { message?: string };
  throw new Error(refusal.message ?? `the server answered with status ${response.status}`);
}

const json = async <T>(path: string, parameters: Parameters = [], signal?: AbortSignal): Promise<T> =>
  (await (await ask(path, parameters, signal)).json()) as T;

export const serverAbout = (): Promise<ServerAbout> => json("/api/v1/about");

export const recordings = async (): Promise<readonly RecordingEntry[]> =>
  (await json<{ recordings: readonly RecordingEntry[] }>("/api/v1/recordings")).recordings;

/** Answers on one selection of one recording, wherever they come from. */
export class RecordingClient {
  constructor(
    private readonly id: string,
    private readonly selection: Parameters,
    private readonly signal: AbortSignal,
    /** Answers a path, which begins with the recording's id. */
    private readonly source: (path: string, parameters: Parameters) => Promise<Response>,
  ) {}

  private async get<T>(path: string, parameters: Parameters = []): Promise<T> {
    return (await (await this.ask(path, parameters)).json()) as T;
  }

  private async bytes(path: string, parameters: Parameters = []): Promise<Uint8Array> {
    return new Uint8Array(await (await this.ask(path, parameters)).arrayBuffer());
  }

  private async ask(path: string, parameters: Parameters): Promise<Response> {
    const answer = await this.source(`/${encodeURIComponent(this.id)}${path}`, [...this.selection, ...parameters]);
    this.signal.throwIfAborted();
    return answer;
  }

  about(): Promise<RecordingAbout> {
    return this.get("");
  }

  timeline(bins: number): Promise<TimelineAnswer> {
    return this.get("/timeline", [["bins", String(bins)]]);
  }

  flame(): Promise<Uint8Array> {
    return this.bytes("/flame");
  }

  functions(limit: number): Promise<FunctionsAnswer> {
    return this.get("/functions", [["limit", String(limit)]]);
  }

  callersAndCallees(name: string): Promise<TreesAnswer> {
    return this.get("/function", [["name", name]]);
  }

  tree(direction: string): Promise<TreesAnswer> {
    return this.get("/tree", [["direction", direction]]);
  }

  processes(): Promise<ProcessesAnswer> {
    return this.get("/processes");
  }

  kernel(): Promise<KernelAnswer> {
    return this.get("/kernel");
  }

  explain(): Promise<ExplainAnswer> {
    return this.get("/explain");
  }

  listing(name: string, file: string): Promise<ListingAnswer> {
    return this.get("/listing", file === "" ? [["name", name]] : [["name", name], ["file", file]]);
  }

  /** Compares with another recording, or with another interval of the same. */
  diff(base: string, time: string): Promise<DiffAnswer> {
    return this.get("/diff", this.against(base, time));
  }

  /** The same as a flame graph. */
  diffFlame(base: string, time: string): Promise<Uint8Array> {
    return this.bytes("/diff/flame", this.against(base, time));
  }

  private against(base: string, time: string): Parameters {
    const parameters: [string, string][] = [];
    if (base !== this.id) parameters.push(["base", base]);
    // Times of one recording mean nothing in another.
    if (time !== "" || base !== this.id) parameters.push(["base-time", time === "" ? "0-" : time]);
    return parameters;
  }

  /** Where what is selected can be had as a file. */
  download(format: string): string {
    return `/api/v1/recordings/${encodeURIComponent(this.id)}/export?${new URLSearchParams([...this.selection.map(([name, value]) => [name, value]), ["format", format]])}`;
  }
}
