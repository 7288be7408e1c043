// Files of what is selected, in plumb's format and in those of other tools.

import type { RecordingClient } from "../api/client";
import { el } from "../widgets/dom";
import { openMenu } from "../widgets/menu";

const FORMATS: readonly [string, string, string][] = [
  ["plumb", ".plumb", "plumb recording"],
  ["pprof", ".pb.gz", "pprof"],
  ["firefox", ".firefox.json", "Firefox Profiler"],
  ["speedscope", ".speedscope.json", "speedscope"],
  ["trace", ".trace.json", "Perfetto, Chrome trace"],
  ["callgrind", ".callgrind", "callgrind"],
  ["otlp", ".otlp", "OpenTelemetry"],
  ["html", ".html", "this page as one file"],
  ["svg", ".svg", "flame graph"],
  ["folded", ".folded", "folded stacks"],
];

export function openDownloads(x: number, y: number, client: RecordingClient, name: string): void {
  const stem = (name.split("/").at(-1) ?? name).replace(/\.plumb$/, "");
  const save = (format: string, ending: string) => () => {
    const link = el("a", { href: client.download(format), download: `${stem}${ending}` });
    link.click();
  };
  const link = { label: "Copy a link to this view", run: () => void navigator.clipboard?.writeText(location.href) };
  openMenu(x, y, [link, ...FORMATS.map(([format, ending, said]) => ({ label: `${said} (${ending})`, run: save(format, ending) }))]);
}
