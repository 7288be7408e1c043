// A server with made-up recordings, for the tests in a browser: a program before and after it became slow, a daemon, and counted system calls.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { directory, openAt, started } from "./harness.mjs";

/** A long name, and one that would be a script if it were not taken as text. */
export const LONG = "std::_Rb_tree<int, std::pair<int const, std::string>, std::_Select1st<std::pair<int const, std::string> > >::_M_insert(int)";
export const HOSTILE = "<img src=x onerror=window.hurt=1>";

/** One second: the worker parses in the first half and sorts in the second; the user interface paints throughout. */
export function recording(slow) {
  let text = "";
  for (let ms = 0; ms < 1000; ms++) {
    const worker = ms < 500 && !slow ? ["parse", "handle"] : [LONG, "sort", "handle"];
    const [comm, tid, stack] = ms % 4 === 0 ? ["ui", 102, [HOSTILE, "paint"]] : ["worker", 101, worker];
    text += `${comm} 100/${tid} [000] 7.${String(ms).padStart(3, "0")}000: 1000000 cpu-clock:\n`;
    [...stack, "main"].forEach((name, at) => (text += `\t${(0x1000 + 16 * at).toString(16)} ${name} (/opt/app)\n`));
    text += "\n";
  }
  return text;
}

/** A minute of a daemon that works for 40 ms at 0.25 s into each second, and of 69 threads that run once. */
function daemon() {
  let text = "";
  const sample = (comm, tid, seconds, ms, stack) => {
    text += `${comm} 200/${tid} [000] ${100 + seconds}.${String(ms).padStart(3, "0")}000: 1000000 cpu-clock:\n`;
    stack.forEach((name, at) => (text += `\t${(0x1000 + 16 * at).toString(16)} ${name} (/opt/daemon)\n`));
    text += "\n";
  };
  // Seconds count from the first sample.
  sample("boot", 299, 0, 0, ["start"]);
  for (let second = 0; second < 60; second++) {
    for (let ms = 250; ms < 290; ms++) sample("ticker", 200, second, ms, ["scan", "tick", "main"]);
    for (let ms = 600; ms < 610; ms++) sample("ticker", 200, second, ms, ["flush", "main"]);
    sample(`one-${second}`, 300 + second, second, 900, ["run", "start"]);
  }
  for (let n = 60; n < 69; n++) sample(`one-${n}`, 300 + n, 59, 901 + n - 60, ["run", "start"]);
  return text;
}

/** What `plumb kernel --latency --json` writes, as far as the page reads it. */
const CALLS = {
  version: 1, command: ["app", "--fast"], recorder: "plumb", duration_ns: 2e9, kernel_named: true, rows: [],
  calls: [
    { name: "read", calls: 4000, errors: 12, errors_by_name: { EAGAIN: 12 }, bytes: 8192, timed_calls: 4000, wall_ns: 6e8, on_cpu_ns: 1e8, blocked_ns: 4.9e8, queued_ns: 1e7, mean_ns: 150000, p50_ns: 1e5, p99_ns: 9e5, max_ns: 4e6,
      histogram: [{ from_ns: 65536, to_ns: 131072, calls: 3900 }, { from_ns: 2097152, to_ns: 4194304, calls: 100 }] },
    { name: "close", calls: 10, errors: 0, errors_by_name: {}, bytes: null, timed_calls: 10, wall_ns: 1e4, on_cpu_ns: 1e4, blocked_ns: 0, queued_ns: 0, mean_ns: 1000, p50_ns: 900, p99_ns: 2000, max_ns: 2000, histogram: [] },
  ],
  groups: [{ id: 7, name: "worker", calls: [{ name: "read", calls: 4000, errors: 12, bytes: 8192 }] }],
  tax: { each_counted_call_ns: 310 },
};

/** Waits of two threads, each ten times: of one for a lock, the disk and a time, of the other for work. */
function waits() {
  const kernel = (...names) => ["schedule", ...names, "entry_SYSCALL_64"].map((name) => [name, "[kernel.kallsyms]"]);
  const app = (...names) => names.map((name) => [name, "/opt/app"]);
  const of = [
    ["worker", 101, 30, [...kernel("__mutex_lock", "__x64_sys_ioctl"), ...app("ioctl", "lock", "main")]],
    ["worker", 101, 10, [...kernel("io_schedule", "__x64_sys_read"), ...app("read", "load", "main")]],
    ["worker", 101, 7, [...kernel("do_nanosleep", "__x64_sys_nanosleep"), ...app("nanosleep", "back_off", "main")]],
    ["pool", 102, 95, [...kernel("ep_poll", "__x64_sys_epoll_wait"), ...app("epoll_wait", "poll", "loop")]],
  ];
  let text = "";
  for (let ms = 0; ms < 1000; ms += 100) {
    for (const [comm, tid, length, stack] of of) {
      text += `${comm} 100/${tid} [000] 7.${String(ms).padStart(3, "0")}000: ${length * 1e6} off-cpu:\n`;
      stack.forEach(([name, file], at) => (text += `\t${(0x1000 + 16 * at).toString(16)} ${name} (${file})\n`));
      text += "\n";
    }
  }
  return text;
}

await writeFile(join(directory, "waits.perf"), waits());
await writeFile(join(directory, "new.perf"), recording(true));
await writeFile(join(directory, "daemon.perf"), daemon());
await writeFile(join(directory, "calls.json"), JSON.stringify(CALLS));
await writeFile(join(directory, "old.perf"), recording(false));

export const { at: base } = await started("old.perf", "new.perf", "daemon.perf", "calls.json", "waits.perf");
export const open = (query = "", options = {}) => openAt(base, query, options);

export const VIEWS = ["Flame graph", "Table", "Call tree", "Source", "Heat map", "Waits", "Processes", "Kernel time", "System calls", "Diff", "Verdict", "Quality"];

/** Drags over a part of an element, given as fractions of its width and height. */
export async function drag(tab, selector, [x0, y0], [x1, y1]) {
  const box = await tab.locator(selector).boundingBox();
  await tab.mouse.move(box.x + x0 * box.width, box.y + y0 * box.height);
  await tab.mouse.down();
  await tab.mouse.move(box.x + x1 * box.width, box.y + y1 * box.height, { steps: 4 });
  await tab.mouse.up();
}
