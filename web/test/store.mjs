// Uses the page of a store in a real browser, before a real server that was sent real profiles: every view, filters, ranges, comparisons, keys,
// narrow screens, a server that is gone, one that asks for a token. Needs what served.mjs needs.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { browser, directory, dropFile, ended, openAt, plumb, run, started as startedWith } from "./harness.mjs";
import { large } from "./payload.mjs";

const started = (...options) => startedWith("--no-agent", "--store", ...options);
const { at: base } = await started("store");
/** The last whole minute: profiles are of the hour before. */
const NOW = Math.floor(Date.now() / 60_000) * 60;

/** Sends stacks with how many samples of 10 ms they have, as an SDK does. */
async function ingest(name, time, stacks) {
  const body = Object.entries(stacks).map(([stack, count]) => `${stack} ${count}`).join("\n");
  const answer = await fetch(`${base}ingest?name=${encodeURIComponent(name)}&from=${time}&sampleRate=100&format=folded`, { method: "POST", body });
  assert.equal(answer.status, 200, await answer.text());
}

const HOSTILE = "<img src=x onerror=window.hurt=1>";

/** A shop whose second version, of the last half hour, parses prices for longer; a mailer that never changes; a scanner that is in the kernel. */
async function fill() {
  for (let minute = 59; minute >= 0; minute--) {
    const [time, version] = [NOW - 60 * minute - 30, minute >= 30 ? "1.4" : "1.5"];
    const wave = Math.round(20 * Math.sin(minute / 6));
    const shop = { "main;serve;handle;parse_price": version === "1.5" ? 180 : 60, "main;serve;handle;render": 120 + wave, "main;serve;read_request": 60, [`main;serve;handle;${HOSTILE}`]: 10 };
    await ingest(`shop.cpu{version=${version},region=${minute % 2 ? "eu" : "us"}}`, time, shop);
    await ingest(`mail.cpu{version=2.0,region=eu}`, time, { "main;loop;send;encode_base64": 71, "main;loop;wait": 20 });
  }
  // The preceding hour, less.
  for (let minute = 119; minute >= 60; minute -= 5) await ingest("shop.cpu{version=1.4,region=eu}", NOW - 60 * minute - 30, { "main;serve;handle;render": 400, "main;serve;handle;parse_price": 200 });
  let text = "";
  for (let ms = 0; ms < 400; ms++) {
    const stack = ms % 4 === 0 ? [["main.poll", "/opt/scanner"]] : [["proc_readdir", "[kernel.kallsyms]"], ["__x64_sys_getdents64", "[kernel.kallsyms]"], ["do_syscall_64", "[kernel.kallsyms]"], ["os.ReadDir", "/opt/scanner"]];
    text += `scanner 100/100 [000] 7.${String(ms).padStart(3, "0")}000: 1000000 cpu-clock:\n`;
    [...stack, ["[unknown]", "/usr/lib/libstripped.so"], ["main.main", "/opt/scanner"]].forEach(([name, file], at) => (text += `\t${(file.startsWith("[") ? 0xffffffff81000000n + 16n * BigInt(at) : 0x1000 + 16 * at).toString(16)} ${name} (${file})\n`));
    text += "\n";
  }
  await writeFile(join(directory, "scanner.perf"), text);
  const pushed = spawnSync(plumb(), ["push", "scanner.perf", "--service", "scanner", "--to", base.slice(0, -1)], { cwd: directory });
  assert.equal(pushed.status, 0, String(pushed.stderr));
}
await fill();

const open = (query = "?last=6h", { at = base, ...options } = {}) => openAt(at, query, options);

/** Every route, as a test of the server takes them from its router: a page of another site may try each. */
const ROUTES = (await readFile(new URL("../../crates/server/tests/routes.txt", import.meta.url), "utf8")).trim().split("\n").map((line) => line.split(" "));

const VIEWS = ["Services", "Flame graph", "Table", "Call tree", "Source", "Kernel time", "Diff", "Heat map", "Verdict", "Quality"];
const service = (name) => `?last=6h&service=${name}`;

const tests = {
  "services have shares, changes and a course, and one is a press away": async () => {
    const it = await open();
    const rows = await it.rows();
    assert.deepEqual(rows.map((row) => /shop|mail|scanner/.exec(row)?.[0]), ["shop", "mail", "scanner"]);
    // 60 × 370 + 12 × 600 samples of the shop, 60 × 91 of the mailer, 400 of 1 ms of the scanner; nothing in the 6 hours before.
    assert.match(rows[1], /^1\d\.\d%54\.60 s/);
    assert.match(rows[0], /new/);
    await it.shot("store-services");
    const hour = await open("?last=1h");
    assert.match((await hour.rows())[0], /\+\d+%/, "the hour before had less");
    await hour.close();
    await it.tab.locator("#view tbody tr", { hasText: "shop" }).click();
    await it.settle();
    assert.deepEqual(await it.chips(), ["service shop"]);
    await it.tab.locator("#graph canvas").waitFor();
    await it.tab.goBack();
    await it.settle();
    assert.equal((await it.rows()).length, 3);
    await it.close();
  },

  "every view shows the selection, without a serious fault of accessibility, in light, dark and on a phone": async () => {
    for (const [kind, options] of Object.entries({ light: {}, dark: { colorScheme: "dark" }, phone: { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true } })) {
      const it = await open(service("shop"), options);
      for (const name of VIEWS) {
        await it.view(name);
        assert.equal(await it.tab.locator(".problem").count(), 0, `${kind} ${name}`);
        assert.deepEqual(await it.faults(), [], `${kind} ${name}`);
        const wide = await it.tab.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(wide <= 0, `${kind} ${name} is ${wide} px too wide`);
        await it.shot(`store-${kind}-${name}`);
      }
      await it.close();
    }
  },

  "services give way to the values of another label, and one is a press away": async () => {
    const it = await open();
    await it.tab.getByLabel("Rows by").selectOption("version");
    await it.settle();
    assert.match(await it.query(), /detail=version/);
    const rows = await it.rows();
    // Of the first version there are two hours, of the second half of one; 60 × 91 samples of the mailer; nothing is said of the scanner's.
    assert.deepEqual(rows.map((row) => /1\.4|1\.5|2\.0|\(none\)/.exec(row)?.[0]), ["1.4", "1.5", "2.0", "(none)"]);
    assert.match(rows[2], /54\.60 s/);
    assert.deepEqual(await it.faults(), []);
    await it.shot("store-labels");
    await it.tab.locator("#view tbody tr", { hasText: "1.5" }).click();
    await it.settle();
    await it.tab.locator("#graph canvas").waitFor();
    assert.deepEqual(await it.chips(), ["version 1.5"]);
    await it.close();
  },

  "findings come first, and each shows its evidence": async () => {
    const it = await open();
    const first = it.tab.locator(".finding").first();
    assert.match(await first.textContent(), /shop|mail|scanner/);
    await first.getByRole("button", { name: /^Show the evidence/ }).click();
    await it.settle();
    await it.tab.locator("#graph canvas").waitFor();
    assert.match((await it.chips()).join(), /^service (shop|mail|scanner)/);
    await it.close();
  },

  "findings that the server has kept for a while have their age": async () => {
    const it = await open();
    assert.doesNotMatch(await it.tab.locator(".findings").textContent(), /As of/);
    await it.tab.route("**/api/v1/findings*", async (route) => {
      const response = await route.fetch();
      const answer = await response.json();
      await route.fulfill({ response, json: { ...answer, until_ms: answer.until_ms - 47_000 } });
    });
    await it.tab.reload();
    await it.settle();
    await it.tab.locator(".finding").first().waitFor();
    assert.match(await it.tab.locator(".findings").textContent(), /As of 4[78] s before the end of the range, when the server last computed them\./);
    await it.close();
  },

  "tables are exact, and a function has callers and callees": async () => {
    const it = await open(`${service("mail")}&view=table`);
    const rows = await it.rows();
    assert.equal(rows.length, 5);
    assert.match(rows.find((row) => row.includes("encode_base64")), /78\.0%78\.0%42\.60 s4260/);
    assert.match(rows.find((row) => row.includes("loop")), /0%100\.0%/);
    await it.tab.locator("#view tbody tr", { hasText: "send" }).click();
    await it.settle();
    assert.match(await it.tab.locator("section[aria-label=Callers]").textContent(), /loop/);
    assert.match(await it.tab.locator("section[aria-label=Callees]").textContent(), /encode_base64/);
    await it.close();
  },

  "source lines are those that frames have": async () => {
    const frames = [["main", 10], ["parse", 120], ["parse", 124]].map(([name, line]) => ({ name, file: "/src/parser.c", line }));
    const [samples, weights] = [[[0, 1], [0, 2]], [30, 10]];
    const profile = { type: "sampled", name: "parser", unit: "none", startValue: 0, endValue: 40, samples, weights };
    await writeFile(join(directory, "parser.json"), JSON.stringify({ $schema: "https://www.speedscope.app/file-format-schema.json", shared: { frames }, profiles: [profile] }));
    const pushed = spawnSync(plumb(), ["push", "parser.json", "--service", "parser", "--to", base.slice(0, -1)], { cwd: directory });
    assert.equal(pushed.status, 0, String(pushed.stderr));
    const it = await open(`${service("parser")}&type=process_cpu:weight:count:weight:count&view=table`);
    await it.tab.locator("#view tbody tr", { hasText: "parse" }).click();
    await it.settle();
    await it.tab.getByRole("button", { name: "Source lines of this function" }).click();
    await it.settle();
    assert.match(await it.tab.locator("#view").textContent(), /100(\.0)?% of all in itself, .*lines only: instructions.*plumb annotate/);
    assert.deepEqual((await it.rows()).map((row) => row.replace(/\s/g, "")), ["75.0%/src/parser.c:120", "25.0%/src/parser.c:124"]);
    await it.shot("store-source");
    await it.close();
    const bare = await open(`${service("scanner")}&view=source&detail=main.poll`);
    assert.match(await bare.tab.locator("#view").textContent(), /25\.0% of all in itself, 100 samples.*100\.0% of the function's samples have no line: build it with -g1/);
    await bare.close();
  },

  "labels filter, values are suggested, and each filter is a chip": async () => {
    const it = await open(`${service("shop")}&view=table`);
    await it.tab.getByRole("button", { name: "+ Filter by a label" }).click();
    await it.tab.waitForSelector("#label-names option[value=version]", { state: "attached" });
    await it.tab.getByLabel("Label", { exact: true }).fill("version");
    await it.tab.getByLabel("Value", { exact: true }).focus();
    await it.tab.waitForSelector('#label-values option[value="1.5"]', { state: "attached" });
    await it.tab.getByLabel("Value", { exact: true }).fill("1.5");
    await it.tab.keyboard.press("Enter");
    await it.settle();
    assert.match(await it.query(), /query=\{version="1.5"\}/);
    // 30 × 180 of 30 × 370 samples.
    assert.match((await it.rows()).find((row) => row.includes("parse_price")), /^48\.\d%/);
    await it.tab.locator("#view tbody tr", { hasText: "parse_price" }).click({ button: "right" });
    await it.tab.getByRole("menuitem", { name: /^Only stacks with it/ }).click();
    await it.settle();
    assert.deepEqual(await it.chips(), ["service shop", "version 1.5", "only stacks with parse_price"]);
    assert.ok(!(await it.rows()).join().includes("render"));
    const again = await open(await it.query());
    assert.deepEqual(await again.rows(), await it.rows(), "a link shows the same");
    await again.close();
    await it.tab.keyboard.press("u");
    await it.settle();
    assert.deepEqual(await it.chips(), ["service shop", "version 1.5"]);
    await it.tab.getByRole("button", { name: "Remove all filters" }).click();
    await it.settle();
    assert.deepEqual(await it.chips(), []);
    await it.close();
  },

  "a range is dragged, moved by keys, and kept in the address": async () => {
    const it = await open(`?last=1h&service=shop&view=table`);
    const strip = it.tab.locator(".chart.large");
    const box = await strip.boundingBox();
    await it.tab.mouse.move(box.x + 0.1 * box.width, box.y + 20);
    await it.tab.mouse.down();
    await it.tab.mouse.move(box.x + 0.4 * box.width, box.y + 20, { steps: 4 });
    await it.tab.mouse.up();
    await it.settle();
    const words = new URLSearchParams(await it.query());
    const [from, until] = [Number(words.get("from")), Number(words.get("until"))];
    assert.ok(Math.abs(until - from - 0.3 * 3_600_000) < 60_000, "three tenths of the hour");
    // Only the first version ran then: 60 of 250 samples.
    assert.match((await it.rows()).find((row) => row.includes("parse_price")), /^2\d\.\d%/);
    await strip.press("ArrowLeft");
    await it.settle();
    assert.ok(Number(new URLSearchParams(await it.query()).get("from")) < from);
    await it.tab.getByLabel("Time range").selectOption("24h");
    await it.settle();
    assert.match(await it.query(), /last=24h/);
    await it.close();
  },

  "two versions are compared: what changed is marked, what did not is not": async () => {
    const it = await open(`${service("shop")}&view=diff&detail=label:version:1.4:1.5`);
    const rows = await it.rows();
    assert.match(rows.find((row) => row.includes("parse_price")), /▲ costs more/);
    assert.match(await it.tab.locator(".lead").textContent(), /version 1\.4 .*version 1\.5/);
    await it.shot("store-versions");
    await it.tab.getByLabel("Compare with").selectOption({ label: "the preceding range of the same length" });
    await it.settle();
    assert.match(await it.tab.locator(".empty").textContent(), /There are no profiles of \d+/);
    const same = await open(`${service("mail")}&last=1h&view=diff&detail=label:region:eu:eu`);
    assert.match(await same.tab.locator(".empty").textContent(), /two different values/);
    await same.close();
    // Neighbouring minutes of the mailer do the same.
    const [a, b] = [NOW - 1800, NOW].map((end) => [(end - 1200) * 1000, end * 1000]);
    const noise = await open(`?service=mail&from=${b[0]}&until=${b[1]}&view=diff&detail=range:${a[0]}-${a[1]}`);
    assert.match(await noise.tab.locator(".lead").textContent(), /No function differs by more than chance/);
    assert.equal(await noise.tab.locator(".mark-more, .mark-less").count(), 0);
    await noise.close();
    await it.close();
  },

  "kernel time, the heat map and the quality of the data": async () => {
    const it = await open(`${service("scanner")}&view=kernel`);
    assert.match((await it.rows()).join(), /75\.0%.*getdents64/);
    await it.view("Quality");
    const lacks = await it.tab.locator(".lacks").textContent();
    assert.match(lacks, /no function names: \/usr\/lib\/libstripped\.so – 400 samples \(100%\)/);
    await it.view("Heat map");
    await it.tab.goto(`${base}?last=1h&view=map`);
    await it.settle();
    assert.deepEqual(await it.tab.locator(".map-names button").allTextContents(), ["shop", "mail", "scanner"]);
    await it.shot("store-map");
    const cells = await it.tab.locator(".map canvas").boundingBox();
    await it.tab.mouse.click(cells.x + cells.width / 4, cells.y + 11);
    await it.settle();
    assert.deepEqual(await it.chips(), ["service shop"]);
    assert.match(await it.query(), /from=\d+&until=\d+&view=flame/);
    await it.close();
  },

  "a file that is dropped opens beside the store, and is not stored": async () => {
    const it = await open("?last=6h", { allowed: (text) => /status of 40[04]/.test(text) });
    await dropFile(it.tab, "letter.txt", "Dear reader,\n");
    await it.tab.locator(".notice.bad", { hasText: "cannot open letter.txt" }).waitFor();
    await dropFile(it.tab, "mine.folded", `main;${HOSTILE};work 3\nmain;rest 1\n`);
    await it.tab.waitForURL(/opened=[0-9a-f]{32}/);
    await it.settle();
    assert.match(await it.tab.locator(".notice", { hasText: "is not in the store" }).textContent(), /until nobody has looked at it for an hour.*plumb push mine.folded/);
    await it.view("Table");
    assert.match((await it.rows()).join(), /75\.0%.*work/);
    assert.match(await it.query(), /opened=.*view=table/);
    await it.tab.reload();
    await it.settle();
    assert.equal((await it.rows()).length, 4);
    assert.deepEqual(await it.faults(), []);
    await it.shot("store-opened");
    await it.tab.getByRole("link", { name: "Back to the store" }).click();
    await it.tab.waitForURL((url) => !url.search.includes("opened"));
    await it.settle();
    assert.ok(!(await it.tab.locator("#view").textContent()).includes("mine"));
    await it.tab.goto(`${base}?opened=0123`);
    assert.match(await it.tab.locator(".problem").textContent(), /not open any more; drop it on the page again/);
    await it.close();
  },

  "more than a hundred thousand stacks are drawn, counted and searched, and the page goes on answering": async () => {
    const stacks = large(800_000).map(([frames, samples]) => [frames.map((frame) => frame.split("|")[1]), samples]);
    assert.ok(stacks.length > 100_000);
    const all = stacks.reduce((sum, [, samples]) => sum + samples, 0);
    await writeFile(join(directory, "crowd.folded"), stacks.map(([names, samples]) => `${names.join(";")} ${samples}\n`).join(""));
    // A store of its own: others' shares stay as they are.
    const { at, child } = await started("crowd");
    const pushed = spawnSync(plumb(), ["push", "crowd.folded", "--service", "crowd", "--to", at.slice(0, -1)], { cwd: directory });
    assert.equal(pushed.status, 0, String(pushed.stderr));
    const it = await open(service("crowd"), { at, reducedMotion: "no-preference" });
    const counted = all.toLocaleString("en");
    assert.equal(await it.tab.locator(".facts-line").textContent(), `${counted} samples`);
    await it.shot("store-crowd");

    // Frames while it zooms: each long one is a page that does not answer.
    const canvas = await it.tab.locator("#graph canvas").boundingBox();
    await it.tab.evaluate(() => {
      window.longest = 0;
      let before = performance.now();
      const next = (now) => {
        window.longest = Math.max(window.longest, now - before);
        before = now;
        requestAnimationFrame(next);
      };
      requestAnimationFrame(next);
    });
    const widest = new Map();
    for (const [[, , name], samples] of stacks) widest.set(name, (widest.get(name) ?? 0) + samples);
    await it.tab.mouse.move(canvas.x + 0.5 * canvas.width, canvas.y + canvas.height - 50);
    assert.equal(await it.tab.locator("#details .name").textContent(), "run");
    const numbers = async () => (await it.tab.locator("#details .numbers > div").allTextContents()).join(", ");
    assert.match(await numbers(), new RegExp(`^samples${counted}, of all100%`));
    await it.tab.mouse.click(canvas.x + 0.002 * canvas.width, canvas.y + canvas.height - 70);
    await it.settle();
    const first = await it.tab.locator("#details .name").textContent();
    assert.ok((await numbers()).includes(`samples${widest.get(first).toLocaleString("en")}`), `${first}: ${await numbers()}`);
    await it.tab.keyboard.press("0");
    await it.settle();

    const share = (part) => `${((100 * part) / all).toFixed(1)}%`;
    // All samples with a function somewhere on their stacks, each once.
    const [name] = stacks[1234][0].slice(-1);
    const found = stacks.reduce((sum, [names, samples]) => sum + (names.includes(name) ? samples : 0), 0);
    await it.tab.getByRole("searchbox").fill(name);
    // Boxes that are too small for a screen are not in the picture, and it says so.
    assert.match(await it.tab.locator("#view .hint").first().textContent(), /^The [\d,]+ smallest boxes are summed up/);
    const matched = it.tab.locator(".matched", { hasText: /^at least [\d.]+% matched/ });
    await matched.waitFor();
    assert.ok(Number.parseFloat((await matched.textContent()).slice("at least ".length)) <= Number.parseFloat(share(found)));
    const longest = await it.tab.evaluate(() => window.longest);
    assert.ok(longest < 5000, `the page did not answer for ${Math.round(longest)} ms`);

    await it.view("Table");
    const self = new Map();
    for (const [names, samples] of stacks) self.set(names.at(-1), (self.get(names.at(-1)) ?? 0) + samples);
    const [[, most]] = [...self].sort((a, b) => b[1] - a[1]);
    const rows = await it.rows();
    assert.ok(rows[0].includes(most.toLocaleString("en")), rows[0]);
    assert.ok(rows.length < self.size, "of thousands of functions not all are rows at once");
    assert.match(await it.tab.locator("#view").textContent(), /Show more rows \(\d+ left\)/, "and it says so");
    await it.view("Call tree");
    assert.match(await it.tab.locator("#view").textContent(), /Branches below .* are left out/);
    await it.close();
    await ended(child);
  },

  "downloads hold what is selected": async () => {
    const it = await open(`${service("mail")}&view=table&focus=send`);
    await it.tab.getByRole("button", { name: "Download the selection" }).click();
    const [download] = await Promise.all([it.tab.waitForEvent("download"), it.tab.getByRole("menuitem", { name: /^speedscope/ }).click()]);
    const file = JSON.parse(await readFile(await download.path(), "utf8"));
    assert.deepEqual(file.shared.frames.map(({ name }) => name).sort(), ["encode_base64", "loop", "main", "send"]);
    await it.close();
  },

  "what comes is shown while the page is live": async () => {
    const it = await open("?last=5m&live=1");
    assert.ok(await it.tab.getByRole("button", { pressed: true }).count(), "Live is pressed");
    await ingest("newcomer.cpu", Math.floor(Date.now() / 1000), { "main;work": 5 });
    await it.tab.locator("#view tbody tr", { hasText: "newcomer" }).waitFor({ timeout: 120_000 });
    await it.close();
  },

  "a page of another site or port sends nothing to the server": async () => {
    const { at, child } = await started("attacked");
    await writeFile(join(directory, "attacked.folded"), "main;work 5\n");
    const shown = await startedWith("attacked.folded");
    const servers = { store: at, recordings: shown.at };
    const other = createServer((_, answer) => answer.setHeader("content-type", "text/html").end("<title>other</title>"));
    await new Promise((done) => other.listen(0, "127.0.0.1", done));
    for (const host of ["127.0.0.1", "localhost"]) {
      const context = await browser.newContext();
      const tab = await context.newPage();
      const answers = new Map();
      tab.on("response", (response) => answers.set(`${response.request().method()} ${response.url()}`, response.status()));
      // A request that needs permission first (CORS) is not sent without it.
      tab.on("requestfailed", (request) => answers.set(`${request.method()} ${request.url()}`, "not sent"));
      await tab.goto(`http://${host}:${other.address().port}/`);
      for (const [server, method, path] of ROUTES) {
        const url = servers[server] + path.slice(1).replace(/\{\w+\}/, "00") + (path.endsWith("ingest") ? "?name=evil&format=folded" : "");
        // Pages may send only these without permission, and the server gives none.
        const isSimple = method === "GET" || method === "POST";
        const init = { method, mode: isSimple ? "no-cors" : "cors", body: method === "GET" ? undefined : "main;evil 9\n" };
        await tab.evaluate(([url, init]) => fetch(url, init).catch(() => undefined), [url, init]);
        assert.equal(answers.get(`${method} ${url}`), isSimple ? 403 : "not sent", `${host}: ${server} ${method} ${path}`);
      }
      // A form navigates, and needs no script of this origin.
      await tab.setContent(`<form method="post" enctype="text/plain" action="${at}ingest?name=evil&format=folded"><input name="main;evil 9" value=""></form>`);
      await Promise.all([tab.waitForNavigation(), tab.evaluate(() => document.forms[0].submit())]);
      assert.equal(answers.get(`POST ${at}ingest?name=evil&format=folded`), 403, "a form");
      await context.close();
    }
    const known = await (await fetch(`${at}querier.v1.QuerierService/LabelValues`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ name: "service_name", start: 0, end: Date.now() }) })).json();
    assert.deepEqual(known.names ?? [], []);
    other.close();
    child.kill();
    shown.child.kill();
  },

  "a label can't turn the text beside it around": async () => {
    await ingest("li\u202eve.cpu{version=1\u202e.0}", NOW - 30, { "main;wo\u202erk": 40 });
    const it = await open();
    const row = it.tab.locator("#view tbody tr", { hasText: "li\ufffdve" });
    assert.equal(await row.count(), 1);
    await row.click();
    await it.settle();
    assert.deepEqual(await it.chips(), ["service li\ufffdve"]);
    for (const name of VIEWS) {
      await it.view(name);
      const shown = await it.tab.evaluate(() => document.title + document.body.innerText + [...document.querySelectorAll("*")].flatMap((one) => ["title", "aria-label"].map((name) => one.getAttribute(name) ?? "")).join());
      assert.equal(shown.split(/(?=.{60}\u202e)/)[1]?.slice(0, 90), undefined, name);
    }
    await it.close();
  },

  "profiles of a damaged block are said to be missing": async () => {
    const first = await started("damaged");
    const body = "main;work 50";
    for (const name of ["one", "two"]) {
      await fetch(`${first.at}ingest?name=${name}.cpu&from=${NOW - 600}&sampleRate=100&format=folded`, { method: "POST", body });
      await fetch(`${first.at}api/v1/admin/flush`, { method: "POST" });
    }
    await ended(first.child);
    const blocks = join(directory, "damaged/blocks/anonymous/blocks");
    await rm(join(blocks, (await readdir(blocks)).sort()[0], "frames.parquet"));
    await rm(join(blocks, (await readdir(blocks)).sort()[0], "profiles.parquet"));
    const { at, child } = await started("damaged");
    const it = await open("?last=6h", { at });
    assert.match(await it.tab.locator("p.notice:visible").textContent(), /^Profiles between .* are missing in all numbers: a block of the store is damaged/);
    assert.equal((await it.rows()).length, 1);
    assert.deepEqual(await it.faults(), []);
    await it.shot("store-damaged");
    await it.close();
    await ended(child);
  },

  "an empty store says how to fill it, an empty range where there is something": async () => {
    const { at, child } = await started("empty");
    const it = await open("", { at });
    assert.match(await it.tab.locator("#view").textContent(), /no profiles yet.*plumb push.*plumb agent/);
    await it.shot("store-empty");
    await it.close();
    child.kill();
    const past = await open("?from=1600000000000&until=1600003600000");
    await past.tab.getByRole("button", { name: "Show the last 30 days" }).click();
    await past.settle();
    assert.ok((await past.rows()).length >= 3);
    await past.close();
  },

  "a server that is gone is said to be, and may come back; one with tokens asks for one": async () => {
    const { at, child } = await started("gone");
    const it = await open("", { at, allowed: (text) => /Failed to load|ERR_/.test(text) });
    await ended(child);
    await it.view("Flame graph").catch(() => undefined);
    await it.tab.locator(".problem").waitFor();
    assert.match(await it.tab.locator(".problem").textContent(), /server does not answer/);
    assert.equal(await it.tab.getByRole("button", { name: "Try again" }).count(), 1);
    await it.shot("store-gone");
    await it.close();
    await writeFile(join(directory, "tokens"), "0f9a8c51d2b74e6f  read  shop\n", { mode: 0o600 });
    const guarded = await started("guarded", "--tokens", "tokens");
    // With this the browser asks for a password.
    const refused = await fetch(`${guarded.at}api/v1/types`);
    assert.deepEqual([refused.status, /^Basic/.test(refused.headers.get("www-authenticate") ?? "")], [401, true]);
    const post = (token) => fetch(`${guarded.at}api/v1/opened?name=a`, { method: "POST", headers: { "content-type": "application/octet-stream", ...token }, body: "main;work 1\n" });
    assert.equal((await post({})).status, 401, "files are opened with a token that may read");
    assert.equal((await post({ authorization: "Bearer 0f9a8c51d2b74e6f" })).status, 201);
    const inside = await open("", { at: guarded.at, httpCredentials: { username: "me", password: "0f9a8c51d2b74e6f" } });
    assert.match(await inside.tab.locator("#view").textContent(), /no profiles yet/);
    await inside.close();
  },
};

await run(tests);
