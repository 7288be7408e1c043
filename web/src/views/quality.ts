// How far the recording is to be trusted, and what would make it better.

import type { RecordingAbout } from "../api/types";
import { count, date, duration, percent } from "../model/format";
import { el } from "../widgets/dom";
import { share } from "./labels";
import type { View } from "./view";

export const qualityView: View = {
  id: "quality",
  title: "Quality",
  async show(host, { about, isStore }) {
    const { selected } = about;
    const facts: [string, string, boolean?][] = [
      ["complete stacks", selected.complete_percent === null ? "unknown" : share(selected.complete_percent), (selected.complete_percent ?? 100) < 95],
    ];
    // Who sends profiles to a store doesn't say.
    if (!isStore) facts.push(["samples lost", count(about.lost_samples), about.lost_samples > 0], ["damaged records", count(about.damaged_records), about.damaged_records > 0]);
    if (selected.coverage_percent !== null) {
      const isOff = selected.coverage_percent < 95 || selected.coverage_percent > 105;
      facts.splice(1, 0, ["coverage of CPU time", share(selected.coverage_percent), isOff]);
    }
    const list = facts.map(([name, value, isBad]) => el("div", { class: isBad ? "bad" : "" }, el("dt", {}, name), el("dd", {}, value)));
    host.append(el("dl", { class: "figures" }, ...list), el("h3", {}, "Missing data and remedies"), ...lacks(about), ...warnings(about), el("h3", {}, "Recording"), recordingFacts(about));
  },
};

function lacks(about: RecordingAbout): Node[] {
  const isKnown = about.selected.complete_percent !== null;
  if (about.lacks.length === 0 && !isKnown) return [el("p", { class: "empty" }, "Code with a notable share of samples has names. The profiles do not say whether stacks are complete.")];
  if (about.lacks.length === 0) return [el("p", { class: "empty" }, "Nothing: all stacks are complete, and code with a notable share of samples has names.")];
  const all = about.events.reduce((sum, event) => sum + event.samples, 0);
  const items = about.lacks.map(({ what, samples, remedy }) =>
    el("li", {}, el("b", {}, what), ` – ${count(samples)} samples (${percent(samples, all)})`, el("div", { class: "hint" }, remedy === "" ? "No remedy is known." : remedy)),
  );
  return [el("ul", { class: "lacks" }, ...items)];
}

function warnings(about: RecordingAbout): Node[] {
  if (about.warnings.length === 0) return [];
  return [el("h3", {}, "Warnings"), el("ul", { class: "lacks" }, ...about.warnings.map((text) => el("li", {}, text)))];
}

function recordingFacts(about: RecordingAbout): HTMLElement {
  const rows: [string, string][] = [
    ["command", about.command.join(" ")],
    ["recorded by", about.recorder],
    ["host", [about.host, about.kernel, about.arch, about.cpus > 0 ? `${about.cpus} CPUs` : ""].filter((part) => part !== "").join(", ")],
    ["begun", about.start_unix_ns > 0 ? date(about.start_unix_ns / 1e6) : ""],
    ["length", about.duration_ns > 0 ? duration(about.duration_ns) : ""],
    ["frequency", about.frequency_hz === null ? "" : `${about.frequency_hz} Hz`],
    ["events", about.events.map((event) => `${event.name} (${count(event.samples)} samples)`).join(", ")],
    ["CPU time of the recorder", about.recorder_cpu_ns === null ? "" : duration(about.recorder_cpu_ns)],
  ];
  const known = rows.filter(([, value]) => value !== "");
  return el("dl", { class: "facts-list" }, ...known.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}
