// Uses the page of `plumb serve FILE` in a real browser, before a real server: mouse, keyboard, finger, narrow screens. Needs Chromium and
// a built plumb ($PLUMB, target/debug or target/release); says so and leaves without failing where one is missing. Options: see harness.mjs.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { browser, directory, dropFile, ended, faults, openAt, plumb, run, started } from "./harness.mjs";

/** A long name, and one that would be a script if it were not taken as text. */
const LONG = "std::_Rb_tree<int, std::pair<int const, std::string>, std::_Select1st<std::pair<int const, std::string> > >::_M_insert(int)";
const HOSTILE = "<img src=x onerror=window.hurt=1>";

/** One second: the worker parses in the first half and sorts in the second; the user interface paints throughout. */
function recording(slow) {
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

await writeFile(join(directory, "new.perf"), recording(true));
await writeFile(join(directory, "daemon.perf"), daemon());
await writeFile(join(directory, "calls.json"), JSON.stringify(CALLS));
await writeFile(join(directory, "old.perf"), recording(false));

const { at: base } = await started("old.perf", "new.perf", "daemon.perf", "calls.json");
const open = (query = "", options = {}) => openAt(base, query, options);

const VIEWS = ["Flame graph", "Table", "Call tree", "Source", "Heat map", "Processes", "Kernel time", "System calls", "Diff", "Verdict", "Quality"];

/** Drags over a part of an element, given as fractions of its width and height. */
async function drag(tab, selector, [x0, y0], [x1, y1]) {
  const box = await tab.locator(selector).boundingBox();
  await tab.mouse.move(box.x + x0 * box.width, box.y + y0 * box.height);
  await tab.mouse.down();
  await tab.mouse.move(box.x + x1 * box.width, box.y + y1 * box.height, { steps: 4 });
  await tab.mouse.up();
}

const tests = {
  "every view shows the recording, and names are text": async () => {
    const it = await open();
    for (const name of VIEWS) {
      await it.view(name);
      assert.equal(await it.tab.locator(".problem").count(), 0, name);
      assert.equal(await it.tab.getByRole("tab", { name, exact: true }).getAttribute("aria-selected"), "true");
      await it.shot(`light-${name}`);
    }
    await it.view("Table");
    const rows = await it.rows();
    assert.equal(rows.length, 7);
    // 1 of 4 samples is the user interface's.
    assert.match(rows.find((row) => row.includes(HOSTILE)) ?? "", /25\.0%25\.0%250 ms250/);
    await it.close();
  },

  "an interval that is dragged narrows every view, and Back widens it again": async () => {
    const it = await open("?view=table");
    const lanes = await it.tab.locator(".lanes").boundingBox();
    const at = (fraction) => [lanes.x + fraction * lanes.width, lanes.y + 8];
    await it.tab.mouse.move(...at(0.02));
    await it.tab.mouse.down();
    await it.tab.mouse.move(...at(0.25), { steps: 4 });
    await it.tab.mouse.up();
    await it.settle();
    assert.match((await it.chips()).join(), /^time 0\.0/);
    assert.ok(!(await it.rows()).join().includes("sort"), "the worker sorts in the second half only");
    await it.view("Call tree");
    assert.ok(!(await it.tab.locator("#view").textContent()).includes("sort"));
    await it.tab.goBack();
    await it.tab.goBack();
    await it.settle();
    assert.deepEqual(await it.chips(), []);
    assert.ok((await it.rows()).join().includes("sort"));
    await it.close();
  },

  "filters are chips, kept in the address, undone with one click": async () => {
    const it = await open();
    await it.tab.getByRole("button", { name: /Only thread ui/ }).click();
    await it.settle();
    assert.equal(await it.query(), "?tid=102");
    await it.view("Table");
    assert.deepEqual((await it.rows()).length, 3);
    await it.tab.locator("#view tbody tr", { hasText: "paint" }).click({ button: "right" });
    await it.tab.getByRole("menuitem", { name: /^Hide it/ }).click();
    await it.settle();
    assert.deepEqual(await it.chips(), ["thread 102", "frames hidden paint"]);
    assert.ok(!(await it.rows()).join().includes("paint"));
    const again = await open(`${await it.query()}`);
    assert.deepEqual(await again.rows(), await it.rows(), "a link shows the same");
    await again.close();
    await it.tab.getByRole("button", { name: "Remove the filter: frames hidden paint" }).click();
    await it.settle();
    assert.ok((await it.rows()).join().includes("paint"));
    await it.close();
  },

  "a file that is dropped opens beside the others, and one that is no profile says why": async () => {
    for (const [kind, options] of [["light", {}], ["dark", { colorScheme: "dark" }], ["phone", { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }]]) {
      // The browser itself notes that a request was refused.
      const it = await open("?view=table", { allowed: (text) => /status of 400/.test(text), ...options });
      const before = await it.tab.getByLabel("Recording").locator("option").count();
      await dropFile(it.tab, "dropped.folded", `main;${HOSTILE};work 3\nmain;rest 1\n`);
      await it.tab.locator(".notice", { hasText: "dropped.folded stays open until this plumb ends" }).waitFor();
      await it.settle();
      await it.tab.locator("#graph canvas").waitFor();
      assert.equal(await it.query(), `?r=${before}`);
      assert.match(await it.tab.locator(".facts-line").textContent(), /4 samples/);
      await it.shot(`dropped-${kind}`);
      assert.deepEqual(await it.faults(), []);
      assert.ok((await it.tab.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0);
      // The same view of it after a reload; and it can be compared with the others.
      await it.tab.reload();
      await it.view("Table");
      assert.ok((await it.rows()).join().includes(HOSTILE));
      await dropFile(it.tab, "letter.txt", "Dear reader,\n");
      const refused = it.tab.locator(".notice.bad", { hasText: "letter.txt" });
      assert.match(await refused.textContent(), /neither folded stacks nor what perf script prints; what can be read is a plumb recording/);
      await it.shot(`refused-${kind}`);
      assert.ok((await it.rows()).join().includes(HOSTILE), "what was shown stays");
      await it.close();
    }
  },

  "files are chosen with the keyboard": async () => {
    const it = await open();
    await it.tab.getByRole("button", { name: /^Open…/ }).focus();
    const chosen = it.tab.waitForEvent("filechooser");
    // The browser knows by now that a test takes the place of its dialog.
    await it.tab.evaluate(() => undefined);
    await it.tab.keyboard.press("Enter");
    const chooser = await chosen;
    await chooser.setFiles([{ name: "chosen.folded", mimeType: "text/plain", buffer: Buffer.from("main;chosen 2\n") }]);
    await it.tab.locator(".notice", { hasText: "chosen.folded stays open" }).waitFor();
    await it.settle();
    await it.view("Table");
    assert.ok((await it.rows()).join().includes("chosen"));
    await it.close();
  },

  "no other site opens a file here": async () => {
    // A browser sends these without asking first.
    for (const type of ["text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"]) {
      const refused = await fetch(`${base}api/v1/recordings?name=x`, { method: "POST", headers: { "content-type": type }, body: "main;x 1\n" });
      assert.equal(refused.status, 400);
    }
    const asked = await fetch(`${base}api/v1/recordings`, { method: "OPTIONS", headers: { origin: "https://evil.example", "access-control-request-method": "POST", "access-control-request-headers": "content-type" } });
    assert.equal(asked.headers.get("access-control-allow-origin"), null);
  },

  "a row opens the sandwich: callers and callees": async () => {
    const it = await open("?view=table");
    await it.tab.locator("#view tbody tr", { hasText: "handle" }).focus();
    await it.tab.keyboard.press("Enter");
    await it.settle();
    assert.match(await it.tab.getByRole("tree", { name: "Callers" }).textContent(), /100%.*main|75\.0%.*main/);
    const callees = await it.tab.getByRole("tree", { name: "Callees" }).textContent();
    assert.match(callees, /37\.5%.*sort/);
    assert.match(callees, /37\.5%.*parse/);
    await it.close();
  },

  "the flame graph zooms by click, and its menu narrows the page": async () => {
    const it = await open();
    const canvas = await it.tab.locator("#graph canvas").boundingBox();
    await it.tab.mouse.move(canvas.x + 0.1 * canvas.width, canvas.y + canvas.height - 50);
    assert.equal(await it.tab.locator("#details .name").textContent(), "handle");
    await it.tab.mouse.click(canvas.x + 0.1 * canvas.width, canvas.y + canvas.height - 50, { button: "right" });
    await it.tab.getByRole("menuitem", { name: "Drop stacks with it" }).click();
    await it.settle();
    assert.deepEqual(await it.chips(), ["no stacks with handle"]);
    assert.match(await it.tab.locator(".facts-line").textContent(), /250 of 1,000 samples/);
    await it.close();
  },

  "in the order of time a thread's runs stand one after the other, and a box selects its time": async () => {
    const it = await open("?tid=101");
    await it.tab.getByLabel("Order of boxes").selectOption("time");
    await it.settle();
    assert.equal(await it.query(), "?detail=time&tid=101");
    const box = await it.tab.locator("#graph canvas").boundingBox();
    const name = async (fraction, row) => {
      await it.tab.mouse.move(box.x + fraction * box.width, box.y + box.height - (row + 0.5) * 20);
      return it.tab.locator("#details .name").textContent();
    };
    // From the floor: all, the thread, main, handle; the worker parses before it sorts.
    assert.equal(await name(0.5, 1), "worker (101)");
    assert.equal(await name(0.1, 4), "parse");
    assert.equal(await name(0.9, 4), "sort");
    assert.match(await it.tab.locator("#details .numbers").textContent(), /0\.50\d* s to 0?\.?99\d* m?s|501 ms to 999 ms/);
    await it.shot("by-time");
    await it.tab.mouse.click(box.x + 0.9 * box.width, box.y + box.height - 90, { button: "right" });
    await it.tab.getByRole("menuitem", { name: "Select its time" }).click();
    await it.settle();
    assert.match((await it.chips()).join(), /time 0\.50\d*-(0\.99\d*|1\.0*) s/);
    await it.view("Table");
    assert.ok(!(await it.rows()).join().includes("parse"));
    await it.close();
  },

  "a function that is selected in the flame graph is marked on the timeline": async () => {
    const it = await open("", { viewport: { width: 1200, height: 800 } });
    const canvas = await it.tab.locator("#graph canvas").boundingBox();
    await it.tab.mouse.click(canvas.x + 0.1 * canvas.width, canvas.y + canvas.height - 70);
    await it.tab.locator(".marked").waitFor();
    assert.match(await it.tab.locator(".timeline-legend").textContent(), /parse/);
    const colours = await it.tab.evaluate(() => {
      const lanes = document.querySelector(".lanes canvas");
      const at = (x, y) => [...lanes.getContext("2d").getImageData(x * lanes.width, y, 1, 1).data].slice(0, 3).join();
      return { early: at(0.25, 18), late: at(0.75, 18), other: at(0.25, 40) };
    });
    assert.notEqual(colours.early, colours.late, "it parses in the first half only");
    assert.equal(colours.late, colours.other);
    await it.shot("marked");
    await it.tab.keyboard.press("Escape");
    await it.tab.waitForFunction(() => !document.querySelector(".marked"));
    await it.close();
  },

  "what runs at one offset of each second is a line, and selecting it opens its flame graph": async () => {
    const it = await open("?r=2&view=heat");
    const dark = await it.tab.evaluate(() => {
      const canvas = document.querySelector(".heat-area canvas");
      const context = canvas.getContext("2d");
      const light = (x, offset) => [...context.getImageData(x * canvas.width, (1 - offset) * canvas.height, 1, 1).data].slice(0, 3).reduce((a, b) => a + b);
      return [0.1, 0.5, 0.9].map((x) => [light(x, 0.27) < light(x, 0.45) - 150, light(x, 0.61) < light(x, 0.75) - 100]);
    });
    assert.deepEqual(dark, [[true, true], [true, true], [true, true]]);
    await it.shot("heat");
    await drag(it.tab, ".heat-area", [0.02, 1 - 0.245], [0.98, 1 - 0.295]);
    await it.settle();
    assert.match((await it.chips()).join(), /^0\.24-0\.3 s of each second|^time .* s, 0\.24-0\.3 s of each second/);
    assert.match(await it.tab.locator(".facts-line").textContent(), /2,400 samples|2,3\d\d samples/);
    await it.tab.locator("#graph canvas").waitFor();
    await it.view("Table");
    const rows = (await it.rows()).join();
    assert.ok(rows.includes("scan") && !rows.includes("flush") && !rows.includes("start"), rows);
    await it.view("Heat map");
    const [mark, area] = [await it.tab.locator(".heat-mark").boundingBox(), await it.tab.locator(".heat-area").boundingBox()];
    assert.ok(Math.abs((area.y + area.height - mark.y - mark.height) / area.height - 0.24) < 0.02, "what is selected is outlined");
    await it.close();
  },

  "the heat map is used with keys alone": async () => {
    const it = await open("?r=2&view=heat");
    await it.tab.locator(".heat-area canvas").focus();
    for (let i = 0; i < 12; i++) await it.tab.keyboard.press("ArrowUp");
    await it.tab.keyboard.press("Shift+ArrowUp");
    await it.tab.keyboard.press("Shift+ArrowRight");
    assert.match(await it.tab.locator(".heat [role=status]").textContent(), /60\.0 ms .*240 ms to 280 ms into the second/);
    await it.tab.keyboard.press("Enter");
    await it.settle();
    assert.match((await it.chips()).join(), /0\.24-0\.28 s of each second/);
    await it.close();
  },

  "threads beyond the first have rows when asked for": async () => {
    const it = await open("?r=2");
    assert.equal(await it.tab.locator("button.thread").count(), 64);
    await it.tab.getByRole("button", { name: /^Show more \(7 left\)/ }).click();
    await it.tab.waitForFunction(() => document.querySelectorAll("button.thread").length === 71);
    assert.equal(await it.tab.getByRole("button", { name: /^Show more/ }).count(), 0);
    assert.equal(await it.tab.locator(".lanes canvas").evaluate((canvas) => canvas.clientHeight), 71 * 22);
    await it.close();
  },

  "counted system calls are shown with their errors and lengths": async () => {
    const it = await open("?r=3");
    assert.equal(await it.tab.getByRole("tab", { name: "System calls" }).getAttribute("aria-selected"), "true");
    assert.match(await it.tab.locator(".lead").first().textContent(), /4,010 calls counted, 12 failed, 600 ms in them/);
    const rows = await it.rows();
    assert.match(rows[0], /4,0002,000128,192600 ms100 ms490 ms10\.0 ms150 µs900 µs4\.0 ms.*read/);
    await it.shot("calls");
    await it.tab.locator("#view tbody tr", { hasText: "read" }).click();
    assert.match(await it.tab.getByRole("table", { name: /Calls of read/ }).textContent(), /3,90066 µs to 131 µs10?02\.1 ms to 4\.2 ms|3,900.*100/);
    await it.tab.getByLabel("Whose calls").selectOption("0");
    assert.equal((await it.rows()).length, 1);
    await it.view("Flame graph");
    assert.match(await it.tab.locator("#view .empty").textContent(), /counts system calls and has no samples/);
    await it.close();
  },

  "source lines open in an editor": async () => {
    const { child, at } = await started("old.perf", "--editor", "idea://open?file={file}&line={line}");
    const { editor } = await (await fetch(`${at}api/v1/recordings`)).json();
    assert.equal(editor, "idea://open?file={file}&line={line}");
    await ended(child);
    const script = spawnSync(plumb(), ["serve", "old.perf", "--editor", "javascript:alert('{file}')"], { cwd: directory });
    assert.notEqual(script.status, 0);
  },

  "a long name keeps the function's own name": async () => {
    const it = await open("?view=table&tid=101", { viewport: { width: 390, height: 800 } });
    const own = it.tab.locator("#view .own", { hasText: "_M_insert" });
    const [box, frame] = [await own.boundingBox(), await it.tab.locator("#view").boundingBox()];
    assert.ok(box.width > 50 && box.x + box.width <= frame.x + frame.width, JSON.stringify(box));
    await it.close();
  },

  "recursion is merged in the order of time and in a difference": async () => {
    const recursive = (depth) => `${"walk;".repeat(depth)}leaf`.split(";").reverse();
    for (const [name, depth] of [["shallow", 2], ["deep", 4]]) {
      let text = "";
      for (let ms = 0; ms < 400; ms++) {
        text += `app 100/100 [000] 7.${String(ms).padStart(3, "0")}000: 1000000 cpu-clock:\n`;
        [...(ms < 200 ? recursive(depth) : ["rest"]), "main"].forEach((frame, at) => (text += `\t${(0x1000 + 16 * at).toString(16)} ${frame} (/opt/app)\n`));
        text += "\n";
      }
      await writeFile(join(directory, `${name}.perf`), text);
    }
    const { child, at } = await started("shallow.perf", "deep.perf");
    const rows = (it) => it.tab.evaluate(() => parseFloat(document.querySelector(".spacer").style.height) / 20);
    const menu = async (it, fraction, row) => {
      const box = await it.tab.locator("#graph canvas").boundingBox();
      await it.tab.mouse.click(box.x + fraction * box.width, box.y + box.height - (row + 0.5) * 20, { button: "right" });
      await it.tab.getByRole("menuitem", { name: "Merge its recursion" }).click();
      await it.settle();
      assert.match(await it.tab.locator("#crumb").textContent(), /recursion of walk merged/);
    };
    const it = await openAt(at, "?r=1&detail=time");
    // all, the thread, main, four of walk, leaf.
    assert.equal(await rows(it), 8);
    await menu(it, 0.2, 3);
    assert.equal(await rows(it), 5);
    await it.shot("time-merged");
    await it.close();
    const diff = await openAt(at, "?r=1&view=diff");
    await diff.tab.getByRole("button", { name: /^Show all code/ }).click();
    await diff.settle();
    assert.equal(await rows(diff), 7);
    await diff.tab.locator("#graph canvas").focus();
    await diff.tab.keyboard.press("r");
    await diff.settle();
    // all, main, walk, leaf: the same in both, and said to be so.
    assert.equal(await rows(diff), 4);
    await diff.shot("diff-merged");
    const box = await diff.tab.locator("#graph canvas").boundingBox();
    await diff.tab.mouse.move(box.x + 0.9 * box.width, box.y + box.height - 50);
    assert.equal(await diff.tab.locator("#details .name").textContent(), "walk");
    assert.match(await diff.tab.locator("#details .numbers").textContent(), /within noise/);
    await diff.close();
    await ended(child);
  },

  "two recordings are compared, with a verdict for each function": async () => {
    const it = await open("?r=1&view=diff");
    assert.match(await it.tab.locator(".lead").textContent(), /functions? differs? by more than chance/);
    assert.match((await it.rows()).find((row) => row.includes("parse")) ?? "", /gone/);
    assert.match((await it.rows()).find((row) => row.includes("_M_insert")) ?? "", /costs more/);
    await it.close();
  },

  "a file of what is selected can be had": async () => {
    const it = await open("?tid=102");
    await it.tab.getByRole("button", { name: "Download the selection" }).click();
    const [file] = await Promise.all([it.tab.waitForEvent("download"), it.tab.getByRole("menuitem", { name: /speedscope/ }).click()]);
    assert.equal(file.suggestedFilename(), "old.perf.speedscope.json");
    const text = await readFile(await file.path(), "utf8");
    assert.ok(text.includes("paint") && !text.includes("parse"));
    await it.close();
  },

  "the keyboard reaches everything, and ? lists it": async () => {
    const it = await open();
    await it.tab.keyboard.press("?");
    assert.match(await it.tab.locator("dialog[open]").textContent(), /Flame graph, Table, Call tree/);
    await it.tab.keyboard.press("Escape");
    await it.tab.keyboard.press("2");
    await it.settle();
    assert.match(await it.query(), /view=table/);
    await it.tab.locator(".lanes canvas").focus();
    await it.tab.keyboard.press("+");
    await it.settle();
    assert.match(await it.query(), /time=0\.2[45]\d*-0\.7[45]/);
    await it.tab.keyboard.press("Escape");
    await it.settle();
    assert.doesNotMatch(await it.query(), /time/);
    const theme = () => it.tab.evaluate(() => document.documentElement.dataset.theme);
    const before = await theme();
    await it.tab.keyboard.press("d");
    assert.notEqual(await theme(), before);
    await it.close();
  },

  "what filters leave empty, and what is wrong, is said with what to do": async () => {
    const it = await open("?symbol=nothing");
    assert.match(await it.tab.locator("#view .empty").textContent(), /No sample passes the filters/);
    await it.close();
    const context = await browser.newContext();
    const tab = await context.newPage();
    await tab.goto(`${base}?focus=(`);
    assert.match(await tab.locator(".problem").textContent(), /no regular expression/);
    await tab.getByRole("button", { name: "Remove all filters" }).click();
    await tab.waitForSelector("#view canvas");
    await context.close();
  },

  "nothing is cut on a phone, light and dark": async () => {
    for (const colorScheme of ["light", "dark"]) {
      const it = await open("?time=0.1-0.9", { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, colorScheme });
      for (const name of VIEWS) {
        await it.view(name);
        await it.shot(`phone-${colorScheme}-${name}`);
        const [wide, cut] = await it.tab.evaluate(() => {
          const out = (element) => element.getBoundingClientRect().right > innerWidth + 1;
          const buttons = [...document.querySelectorAll("header button, header select, #view button, .timeline button")];
          return [document.documentElement.scrollWidth, buttons.filter(out).map((element) => element.textContent)];
        });
        assert.ok(wide <= 390, `${name}: ${wide} pixels wide`);
        assert.deepEqual(cut, [], name);
      }
      await it.close();
    }
  },

  "every control has a name for a screen reader": async () => {
    const it = await open();
    for (const name of VIEWS) {
      await it.view(name);
      const nameless = await it.tab.evaluate(() =>
        [...document.querySelectorAll("button, input, select, canvas, [role=tree], table")]
          .filter((element) => !(element.getAttribute("aria-label") || element.textContent.trim() || element.closest("label")))
          .map((element) => element.outerHTML.slice(0, 100)),
      );
      assert.deepEqual(nameless, [], name);
      assert.deepEqual(await faults(it.tab), [], name);
    }
    await it.tab.keyboard.press("?");
    assert.deepEqual(await faults(it.tab), [], "help");
    await it.tab.keyboard.press("Escape");
    await it.close();
    for (const [query, options] of [["?r=2&view=heat&time=5-9", { colorScheme: "dark" }], ["?r=1&view=diff", { colorScheme: "dark" }], ["?r=3", {}]]) {
      const it = await open(query, options);
      assert.deepEqual(await faults(it.tab), [], query);
      await it.close();
    }
  },
};

await run(tests);
