// Asks the server. Errors carry the server's own sentence.

import type {
  CallsAnswer,
  DiffAnswer,
  ExplainAnswer,
  FunctionsAnswer,
  HeatmapAnswer,
  KernelAnswer,
  FunctionListing,
  ProcessesAnswer,
  RecordingAbout,
  RecordingEntry,
  ServerAbout,
  TimelineAnswer,
  TreesAnswer,
  WaitsAnswer,
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
  const missing = response.headers.get("plumb-missing");
  if (missing) dispatchEvent(new CustomEvent<string>(MISSING, { detail: missing }));
  return answered(response);
}

/** Event of the window: profiles are missing in an answer. Its detail: first and last millisecond of each damaged block, `from-until,from-until`. */
export const MISSING = "missing";

/** An answer that is no refusal. */
async function answered(response: Response): Promise<Response> {
  if (response.ok) return response;
  const refusal = (await response.json().catch(() => ({}))) as { message?: string };
  throw new Error(refusal.message ?? `the server answered with status ${response.status}`);
}

/** Sends a file to be opened as a recording. */
export async function openFile(path: string, file: File): Promise<RecordingEntry> {
  let response: Response;
  try {
    const body = await file.arrayBuffer();
    response = await fetch(`${path}?${new URLSearchParams({ name: file.name })}`, { method: "POST", headers: { "content-type": "application/octet-stream" }, body });
  } catch {
    // A server that refuses a large file may end the connection before it was sent.
    throw new Error(`it could not be read, it is too large for this page, or the server has ended; run: plumb open ${file.name}`);
  }
  return (await answered(response).then((answer) => answer.json())) as RecordingEntry;
}

const json = async <T>(path: string, parameters: Parameters = [], signal?: AbortSignal): Promise<T> =>
  (await (await ask(path, parameters, signal)).json()) as T;

export const serverAbout = (): Promise<ServerAbout> => json("/api/v1/about");

/** The recordings, and the link that opens a source line in an editor. */
export const recordings = (): Promise<{ readonly recordings: readonly RecordingEntry[]; readonly editor?: string }> => json("/api/v1/recordings");

/** Answers on one selection of one recording, wherever they come from. */
export class RecordingClient {
  protected readonly base: string = "/api/v1/recordings";

  constructor(
    private readonly id: string,
    private readonly selection: Parameters,
    private readonly signal: AbortSignal,
    /** Answers a path, which begins with the recording's id. */
    private readonly source: (path: string, parameters: Parameters) => Promise<Response | Uint8Array>,
  ) {}

  private async get<T>(path: string, parameters: Parameters = []): Promise<T> {
    const answer = await this.ask(path, parameters);
    return (answer instanceof Uint8Array ? JSON.parse(new TextDecoder().decode(answer)) : await answer.json()) as T;
  }

  private async bytes(path: string, parameters: Parameters = []): Promise<Uint8Array> {
    const answer = await this.ask(path, parameters);
    return answer instanceof Uint8Array ? answer : new Uint8Array(await answer.arrayBuffer());
  }

  private async ask(path: string, parameters: Parameters): Promise<Response | Uint8Array> {
    const answer = await this.source(`/${encodeURIComponent(this.id)}${path}`, [...this.selection, ...parameters]);
    this.signal.throwIfAborted();
    return answer;
  }

  about(): Promise<RecordingAbout> {
    return this.get("");
  }

  /** Threads from a rank on, which the heaviest has 0 of; `more` narrows the selection. */
  timeline(bins: number, skip = 0, threads = 64, more: Parameters = []): Promise<TimelineAnswer> {
    const skipped: Parameters = skip > 0 ? [["skip", String(skip)]] : [];
    return this.get("/timeline", [["bins", String(bins)], ["threads", String(threads)], ...skipped, ...more]);
  }

  flame(order: "name" | "time" = "name"): Promise<Uint8Array> {
    return this.bytes("/flame", order === "name" ? [] : [["order", order]]);
  }

  heatmap(by: "offset" | "latency", columns: number): Promise<HeatmapAnswer> {
    return this.get("/heatmap", by === "offset" ? [["columns", String(columns)]] : [["by", by], ["columns", String(columns)]]);
  }

  calls(): Promise<CallsAnswer> {
    return this.get("/calls");
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

  waits(): Promise<WaitsAnswer> {
    return this.get("/waits");
  }

  explain(): Promise<ExplainAnswer> {
    return this.get("/explain");
  }

  listing(name: string, file: string): Promise<FunctionListing> {
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
    return `${this.base}/${encodeURIComponent(this.id)}/export?${new URLSearchParams([...this.selection.map(([name, value]) => [name, value]), ["format", format]])}`;
  }
}
