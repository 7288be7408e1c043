// How long a flame graph of many boxes takes until it is seen, and how long each frame of a zoom takes: plumb's page beside
// d3-flame-graph and speedscope, the same stacks in headless Chromium.
//
//     npm ci && (cd ../../web && npm ci) && node run.mjs [BOXES [RUNS [TOOLS]]]
//
// TOOLS are names with commas between, such as `plumb,d3-flame-graph`. With DIST=DIR a page that was built before, DIR/offline.html, is measured too,
// as `plumb before`. Tools take turns, so that what else the machine does meets all of them.
//
// Each tool gets the data in its own format from memory or from this machine. "First paint" is from the data being there to the end of
// the frame after the picture was drawn. Frames are timed without a limit of their rate, so that one frame's interval is its cost.

import { createServer } from "node:http";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { extname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { large, page, payload } from "../../web/test/payload.mjs";
import { chromium } from "../../web/node_modules/playwright-core/index.mjs";

const BOXES = Number(process.argv[2] ?? 400_000);
const RUNS = Number(process.argv[3] ?? 5);
const ONLY = process.argv[4]?.split(",");
const DIST = process.env.DIST && pathToFileURL(`${resolve(process.env.DIST)}/`);
const here = (path) => new URL(path, import.meta.url).pathname;
const CANDIDATES = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const executablePath = CANDIDATES.find((path) => path && existsSync(path));
const LIMIT_MS = 120_000;

/** The stacks as a tree of names, which d3-flame-graph reads. */
function tree(stacks) {
  const root = { name: "all", value: 0, children: [], by: new Map() };
  for (const [frames, samples] of stacks) {
    let at = root;
    at.value += samples;
    for (const frame of frames) {
      const name = frame.split("|")[1];
      let next = at.by.get(name);
      if (!next) {
        next = { name, value: 0, children: [], by: new Map() };
        at.by.set(name, next);
        at.children.push(next);
      }
      next.value += samples;
      at = next;
    }
  }
  let boxes = 0;
  const strip = (node) => {
    boxes++;
    delete node.by;
    node.children.forEach(strip);
  };
  strip(root);
  return { root, boxes };
}

/** The same as speedscope reads it. */
function speedscope(stacks) {
  const frames = [];
  const known = new Map();
  const samples = stacks.map(([names]) =>
    names.map((text) => {
      const name = text.split("|")[1];
      if (!known.has(name)) known.set(name, frames.push({ name }) - 1);
      return known.get(name);
    }),
  );
  const weights = stacks.map(([, weight]) => weight);
  const sum = weights.reduce((a, b) => a + b, 0);
  return {
    $schema: "https://www.speedscope.app/file-format-schema.json",
    shared: { frames },
    profiles: [{ type: "sampled", name: "made", unit: "none", startValue: 0, endValue: sum, samples, weights }],
  };
}

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
const quantile = (values, part) => [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(part * values.length))];

/** The part of d3 that the page of d3-flame-graph takes from outside. */
async function bundled() {
  const { build } = await import("../../web/node_modules/esbuild/lib/main.js");
  const options = { stdin: { contents: `export { select } from "d3-selection"`, resolveDir: here(".") }, bundle: true, write: false, format: "iife", globalName: "d3" };
  return (await build(options)).outputFiles[0].text;
}

const stacks = large(BOXES);
const { root, boxes } = tree(stacks);
const data = payload(stacks, { title: "made" });
const files = new Map([
  ["/plumb.html", Buffer.from(await page(data))],
  ...(DIST ? [["/before.html", Buffer.from(await page(data, "test", DIST))]] : []),
  ["/tree.json", Buffer.from(JSON.stringify(root))],
  ["/speedscope.json", Buffer.from(JSON.stringify(speedscope(stacks)))],
  ["/d3/d3.js", Buffer.from(await bundled())],
  ["/d3.html", Buffer.from(`<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="/d3/d3-flamegraph.css"><div id="chart"></div><script src="/d3/d3.js"></script><script src="/d3/d3-flamegraph.min.js"></script>`)],
]);
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json", ".wasm": "application/wasm" };
const server = createServer(async (request, response) => {
  const path = new URL(request.url, "http://x").pathname;
  const disk = path.startsWith("/d3/") ? here(`node_modules/d3-flame-graph/dist/${path.slice(4)}`) : here(`../../web/node_modules/speedscope/dist/release/${path.replace("/speedscope/", "")}`);
  const body = files.get(path) ?? (await readFile(disk).catch(() => undefined));
  response.writeHead(body ? 200 : 404, { "content-type": TYPES[extname(path)] ?? "application/octet-stream" });
  response.end(body);
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const base = `http://127.0.0.1:${server.address().port}`;

/** Lets the page take note of each frame, and of when it was first drawn after `since`. */
const WATCH = () => {
  window.frames_ms = [];
  window.watch = (ms) =>
    new Promise((done) => {
      const intervals = [];
      let before = performance.now();
      const begin = before;
      const next = () => {
        const now = performance.now();
        intervals.push(now - before);
        before = now;
        if (now - begin < ms) requestAnimationFrame(next);
        else done(intervals);
      };
      requestAnimationFrame(next);
    });
  window.painted = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))));
};

/** Opens a page of plumb. Clicks go to boxes in the row of the functions that `run` calls. */
const plumb = (file) => async (tab) => {
  await tab.goto(`${base}/${file}`);
  await tab.waitForFunction(() => performance.getEntriesByName("plumb-drawn").length > 0, undefined, { timeout: LIMIT_MS });
  const first = await tab.evaluate(async () => {
    const at = (name) => performance.getEntriesByName(name)[0].startTime;
    return at("plumb-drawn") - at("plumb-unpacked");
  });
  const canvas = await tab.locator("#graph canvas").boundingBox();
  const zoom = (part) => tab.mouse.click(canvas.x + part * canvas.width, canvas.y + canvas.height - 70);
  return { first, zoom, reset: () => tab.keyboard.press("0") };
};

/** What each tool does until its picture is there, and how it zooms. */
const tools = {
  ...(DIST ? { "plumb before": plumb("before.html") } : {}),
  "plumb": plumb("plumb.html"),
  "d3-flame-graph": async (tab) => {
    await tab.goto(`${base}/d3.html`);
    const first = await tab.evaluate(async () => {
      const data = await (await fetch("/tree.json")).json();
      const start = performance.now();
      // Boxes below a pixel are left out, to its advantage: without that it makes an element of each of them.
      window.chart = flamegraph().width(1180).cellHeight(20).minFrameSize(1).transitionDuration(160);
      d3.select("#chart").datum(data).call(window.chart);
      return (await window.painted()) - start;
    });
    const zoom = (part) =>
      tab.evaluate((part) => {
        const boxes = [...document.querySelectorAll("#chart g")].filter((g) => g.querySelector("rect").getBoundingClientRect().width > 20);
        boxes[Math.floor(part * boxes.length)].dispatchEvent(new MouseEvent("click", { bubbles: true }));
      }, part);
    return { first, zoom, reset: () => tab.evaluate(() => window.chart.resetZoom()) };
  },
  "speedscope": async (tab) => {
    await tab.goto(`${base}/speedscope/index.html#profileURL=${encodeURIComponent(`${base}/speedscope.json`)}&view=left-heavy`);
    // Its canvas is there only when the profile was read and laid out.
    const isThere = () => performance.getEntriesByType("resource").some(({ name }) => name.endsWith("/speedscope.json")) && document.querySelector("canvas") !== null && !/Loading/.test(document.body.textContent);
    await tab.waitForFunction(isThere, undefined, { timeout: LIMIT_MS });
    const first = await tab.evaluate(async () => {
      const file = performance.getEntriesByType("resource").find(({ name }) => name.endsWith("/speedscope.json"));
      return (await window.painted()) - file.responseEnd;
    });
    const zoom = (part) => tab.mouse.dblclick(1200 * part, 260);
    return { first, zoom, reset: () => tab.keyboard.press("0") };
  },
};

/** CPU time of the page's main thread so far, in milliseconds: what a loaded machine changes least. */
async function cpu(session) {
  const { metrics } = await session.send("Performance.getMetrics");
  return 1000 * metrics.find(({ name }) => name === "TaskDuration").value;
}

const args = ["--no-sandbox", "--disable-gpu", "--disable-frame-rate-limit", "--disable-gpu-vsync"];
const browser = await chromium.launch({ executablePath, args });
console.log(`${boxes} boxes, ${stacks.length} stacks, ${RUNS} runs, Chromium ${browser.version()}\n`);
console.log("| tool | first paint after the data, ms | main thread until then, from the start, CPU ms | zoom frame, median ms | 95% ms | CPU ms | frames |");
console.log("|---|---|---|---|---|---|---|");
const asked = Object.entries(tools).filter(([name]) => !ONLY || ONLY.some((one) => name.startsWith(one)));
const measured = asked.map(() => ({ firsts: [], loads: [], frames: [], costs: [] }));
for (let run = 0; run < RUNS; run++) {
  for (const [index, [, load]] of asked.entries()) {
    const { firsts, loads, frames, costs } = measured[index];
    const tab = await browser.newPage({ viewport: { width: 1200, height: 800 } });
    tab.setDefaultTimeout(LIMIT_MS);
    const session = await tab.context().newCDPSession(tab);
    await session.send("Performance.enable", { timeDomain: "threadTicks" });
    await tab.addInitScript(WATCH);
    const loaded = await load(tab);
    firsts.push(loaded.first);
    loads.push(await cpu(session));
    for (const part of [0.15, 0.4, 0.6, 0.85]) {
      const before = await cpu(session);
      const watched = tab.evaluate(() => window.watch(200));
      await loaded.zoom(part);
      const intervals = await watched;
      frames.push(...intervals);
      costs.push(((await cpu(session)) - before) / intervals.length);
      await loaded.reset();
      await tab.waitForTimeout(400);
    }
    await tab.close();
  }
}
asked.forEach(([name], index) => {
  const { firsts, loads, frames, costs } = measured[index];
  const cells = [`${median(firsts).toFixed(0)} (${firsts.map((ms) => ms.toFixed(0)).join(", ")})`, median(loads).toFixed(0), median(frames).toFixed(1), quantile(frames, 0.95).toFixed(1), median(costs).toFixed(1), frames.length];
  console.log(`| ${name} | ${cells.join(" | ")} |`);
});
await browser.close();
server.close();
