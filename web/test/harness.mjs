// Shared by the tests in a browser: finds Chromium and plumb, starts servers, opens pages that may neither fail nor ask anybody else, and waits
// until a page has settled. Nothing here waits for a length of time: a machine under load would make a test fail by chance.
//
// `--only WORDS` runs the tests whose names contain them, `--shots DIR` keeps pictures.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Ends the test without failing it: something that it needs is not here. */
export function skip(why) {
  console.log(`skipped: ${why}`);
  process.exit(0);
}

const option = (name) => (process.argv.includes(name) ? process.argv[process.argv.indexOf(name) + 1] : undefined);
const firstOf = (paths) => paths.find((path) => path && existsSync(path));
const target = process.env.CARGO_TARGET_DIR ?? new URL("../../target", import.meta.url).pathname;

const executablePath =
  firstOf([process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"]) ??
  skip("no Chromium here (looked at $CHROMIUM, /usr/bin/chromium, /usr/bin/google-chrome)");
const { chromium } = await import("playwright-core").catch(() => skip("playwright-core is not installed (run `npm ci` in web/)"));
const axe = await readFile(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8").catch(() => skip("axe-core is not installed (run `npm ci` in web/)"));

/** The plumb under test: $PLUMB, or the one that is built. */
export const plumb = () =>
  firstOf([process.env.PLUMB, join(target, "debug/plumb"), join(target, "release/plumb")]) ?? skip("no plumb is built (run `cargo build`)");

/** Where pictures are kept; undefined: nowhere. */
export const shots = option("--shots");
if (shots) await mkdir(shots, { recursive: true });

/** Removed at the end. */
export const directory = await mkdtemp(join(tmpdir(), "plumb-web-"));
export const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
const children = [];

/** Starts `plumb serve` with these arguments and waits until it says where it listens. */
export function started(...options) {
  const child = spawn(plumb(), ["serve", ...options, "--listen", "127.0.0.1:0"], { cwd: directory, stdio: ["ignore", "ignore", "pipe"] });
  children.push(child);
  return new Promise((done, fail) => {
    let said = "";
    child.stderr.on("data", (data) => {
      said += data;
      const found = /http:\/\/[\d.]+:\d+/.exec(said)?.[0];
      if (found) done({ child, at: `${found}/` });
    });
    child.on("exit", () => fail(new Error(`plumb ended: ${said}`)));
  });
}

/** Ends a server, which first writes what it has. */
export const ended = (child) => child.exitCode !== null || child.signalCode !== null || new Promise((done) => child.once("exit", done).kill());

/** Waits until the page shows what it was asked for: whatever is under way says `aria-busy`, and drawing takes one frame. */
export async function settled(tab) {
  await tab.waitForFunction(() => document.querySelector("#view > *") && !document.querySelector("[aria-busy=true]"));
  await tab.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

/** Serious faults for people who can't see the page, or not well. The page's policy lets only its own scripts in: this one comes from the browser itself. */
export async function faults(tab) {
  await tab.evaluate(axe);
  const { violations } = await tab.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  return serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ target, html }) => `${target.join(" ")} ${html.slice(0, 200)}`).slice(0, 3).join(", ")}`);
}

/** A page without motion, unless a test is about that, and the errors of it and its requests to anywhere else. */
export async function watched(isOwn, { allowed = () => false, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, reducedMotion: "reduce", ...options });
  const tab = await context.newPage();
  const wrong = [];
  tab.on("pageerror", (error) => wrong.push(error.message));
  tab.on("console", (message) => message.type() === "error" && !allowed(message.text()) && wrong.push(message.text()));
  tab.on("request", (request) => !isOwn(request.url()) && wrong.push(request.url()));
  // To try a change of the page without building plumb again: PAGE=dist node test/served.mjs
  if (process.env.PAGE) await context.route(/\/page\.(js|css)$/, (route) => route.fulfill({ path: join(process.env.PAGE, new URL(route.request().url()).pathname) }));
  return { context, tab, wrong };
}

/** Opens the page of a server; an error in it, or a request to anywhere else, fails the test. */
export async function openAt(at, query, options) {
  const { context, tab, wrong } = await watched((url) => /^(data|blob):/.test(url) || url.startsWith(at), options);
  await tab.goto(at + query);
  const settle = () => settled(tab);
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
    faults: () => faults(tab),
    close: async () => {
      assert.deepEqual(wrong, []);
      assert.equal(await tab.evaluate(() => window.hurt), undefined, "a name was taken as markup");
      await context.close();
    },
  };
}

/** Drops a file on the page, as a file manager would. */
export async function dropFile(tab, name, text) {
  const data = await tab.evaluateHandle(([name, text]) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([text], name));
    return transfer;
  }, [name, text]);
  await tab.dispatchEvent("body", "dragover", { dataTransfer: data });
  assert.ok(await tab.evaluate(() => document.body.classList.contains("dropping")), "the page says that it takes the file");
  if (shots) await tab.screenshot({ path: join(shots, "dropping.png") });
  await tab.dispatchEvent("body", "drop", { dataTransfer: data });
}

/** Runs tests one after the other, removes what they made, and ends. */
export async function run(tests) {
  const only = option("--only") ?? "";
  let failed = 0;
  for (const [name, test] of Object.entries(tests)) {
    if (!name.includes(only)) continue;
    try {
      await test();
      console.log(`ok   ${name}`);
    } catch (error) {
      failed++;
      console.log(`FAIL ${name}\n     ${error.stack?.split("\n").slice(0, 12).join("\n     ")}`);
    }
  }
  await browser.close();
  await Promise.all(children.map(ended));
  await rm(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  process.exit(failed === 0 ? 0 : 1);
}
