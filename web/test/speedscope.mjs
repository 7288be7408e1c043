// Opens a profile in speedscope, as its npm package ships it, and saves what speedscope made of it:
//   node test/speedscope.mjs PROFILE SAVED
// Needs Chromium, and `npm ci` in web/; says so and leaves with 77 where something isn't there.

import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";

const skip = (why) => {
  console.log(`skipped: ${why}`);
  process.exit(77);
};
const [profile, saved] = process.argv.slice(2);
const CANDIDATES = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const executablePath = CANDIDATES.find((path) => path && existsSync(path));
if (!executablePath) skip("no Chromium here (looked at $CHROMIUM, /usr/bin/chromium, /usr/bin/google-chrome)");
const page = fileURLToPath(new URL("../node_modules/speedscope/dist/release/index.html", import.meta.url));
if (!existsSync(page)) skip("speedscope is not installed (run `npm ci` in web/)");
const { chromium } = await import("playwright-core").catch(() => skip("playwright-core is not installed (run `npm ci` in web/)"));

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--enable-unsafe-swiftshader"] });
try {
  const tab = await browser.newPage();
  tab.on("dialog", (dialog) => {
    console.error(dialog.message());
    process.exit(1);
  });
  // What `speedscope FILE` does: the page is told of a script that has the file.
  const data = JSON.stringify((await readFile(profile)).toString("base64"));
  const script = `speedscope.loadFileFromBase64(${JSON.stringify(basename(profile))}, ${data})`;
  await tab.route("**/profile-of-test.js", (route) => route.fulfill({ contentType: "text/javascript", body: script }));
  await tab.goto(`file://${page}#localProfilePath=/profile-of-test.js`);
  await tab.waitForFunction(() => document.title !== "speedscope", undefined, { timeout: 60_000 });
  const download = tab.waitForEvent("download");
  await tab.keyboard.press("Control+s");
  await (await download).saveAs(saved);
} finally {
  await browser.close();
}
