// Uses the page of `plumb serve FILE` in a real browser, before a real server: mouse, keyboard, finger, narrow screens. Needs Chromium and
// a built plumb ($PLUMB, target/debug or target/release); says so and leaves without failing where one is missing. `--shots DIR` keeps pictures.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const skip = (why) => {
  console.log(`skipped: ${why}`);
  process.exit(0);
};
const CANDIDATES = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const executablePath = CANDIDATES.find((path) => path && existsSync(path)) ?? skip("no Chromium here");
const target = process.env.CARGO_TARGET_DIR ?? new URL("../../target", import.meta.url).pathname;
const plumb =
  [process.env.PLUMB, join(target, "debug/plumb"), join(target, "release/plumb")].find((path) => path && existsSync(path)) ??
  skip("no plumb is built (run `cargo build`)");
const { chromium } = await import("playwright-core").catch(() => skip("playwright-core is not installed (run `npm ci` in web/)"));

const shots = process.argv.includes("--shots") ? process.argv[process.argv.indexOf("--shots") + 1] : undefined;
if (shots) await mkdir(shots, { recursive: true });
const directory = await mkdtemp(join(tmpdir(), "plumb-served-"));

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

await writeFile(join(directory, "new.perf"), recording(true));
await writeFile(join(directory, "old.perf"), recording(false));
/** Starts plumb and waits until it says where it listens. */
function started(...options) {
  const child = spawn(plumb, ["serve", ...options, "--listen", "127.0.0.1:0"], { cwd: directory, stdio: ["ignore", "ignore", "pipe"] });
  const url = new Promise((done, fail) => {
    let said = "";
    child.stderr.on("data", (data) => {
      said += data;
      const found = /http:\/\/[\d.]+:\d+/.exec(said)?.[0];
      if (found) done(`${found}/`);
    });
    child.on("exit", () => fail(new Error(`plumb ended: ${said}`)));
  });
  return { child, url };
}

const { child: server, url } = started("old.perf", "new.perf");
const base = await url;
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });

/** Opens the page; an error in it, or a request to anywhere else, fails the test. */
async function open(query = "", { at = base, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, ...options });
  const tab = await context.newPage();
  const wrong = [];
  tab.on("pageerror", (error) => wrong.push(error.message));
  tab.on("console", (message) => message.type() === "error" && wrong.push(message.text()));
  tab.on("request", (request) => !request.url().startsWith(at) && !request.url().startsWith("data:") && wrong.push(request.url()));
  await tab.goto(at + query);
  const settle = async () => {
    await tab.waitForSelector("#view:not([aria-busy]) > *");
    await tab.waitForTimeout(100);
  };
  await settle();
  return {
    tab,
    settle,
    view: async (name) => {
      await tab.getByRole("tab", { name, exact: true }).click();
      await settle();
    },
    rows: () => tab.locator("#view tbody tr").allTextContents(),
    chips: () => tab.locator(".chip-text").allTextContents(),
    query: () => tab.evaluate(() => decodeURIComponent(location.search)),
    shot: async (name) => shots && (await tab.screenshot({ path: join(shots, `${name}.png`) })),
    close: async () => {
      assert.deepEqual(wrong, []);
      assert.equal(await tab.evaluate(() => window.hurt), undefined, "a name was taken as markup");
      await context.close();
    },
  };
}

const VIEWS = ["Flame graph", "Table", "Call tree", "Source", "Processes", "Kernel time", "Diff", "Verdict", "Quality"];

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

  "a long name keeps the function's own name": async () => {
    const it = await open("?view=table&tid=101", { viewport: { width: 390, height: 800 } });
    const own = it.tab.locator("#view .own", { hasText: "_M_insert" });
    const [box, frame] = [await own.boundingBox(), await it.tab.locator("#view").boundingBox()];
    assert.ok(box.width > 50 && box.x + box.width <= frame.x + frame.width, JSON.stringify(box));
    await it.close();
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
    const { readFile } = await import("node:fs/promises");
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

  "a store shows its services, and of one of them its functions": async () => {
    const { child, url } = started("--store", "store");
    const at = await url;
    for (const [service, file] of [["shop", "old.perf"], ["shop", "old.perf"], ["mail", "new.perf"]]) {
      const pushed = spawnSync(plumb, ["push", file, "--service", service, "--to", at.slice(0, -1)], { cwd: directory });
      assert.equal(pushed.status, 0, String(pushed.stderr));
    }
    const it = await open("?last=24h", { at });
    const rows = await it.rows();
    assert.equal(rows.length, 2);
    // Each file is a second of samples.
    assert.match(rows[0], /66\.7%2\.00 s.*shop/);
    assert.match(rows[1], /33\.3%1\.00 s.*mail/);
    await it.shot("store");
    await it.tab.locator("#view tbody tr", { hasText: "shop" }).click();
    await it.settle();
    assert.match(await it.query(), /service=shop/);
    await it.tab.locator("#graph canvas").waitFor();
    const functions = await it.rows();
    assert.match(functions.find((row) => row.includes("parse")) ?? "", /37\.5%37\.5%750 ms/);
    assert.match(functions.find((row) => row.includes("handle")) ?? "", /0%75\.0%/);
    await it.shot("store-service");
    await it.close();
    child.kill();
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
    }
    await it.close();
  },
};

let failed = 0;
for (const [name, run] of Object.entries(tests)) {
  try {
    await run();
    console.log(`ok   ${name}`);
  } catch (error) {
    failed++;
    console.log(`FAIL ${name}\n     ${error.stack?.split("\n").slice(0, 12).join("\n     ")}`);
  }
}
await browser.close();
server.kill();
await rm(directory, { recursive: true });
process.exit(failed === 0 ? 0 : 1);
