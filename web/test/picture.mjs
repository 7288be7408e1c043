// A page in one file with a picture of made-up stacks, for the tests in a browser.

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { directory, settled, shots, watched } from "./harness.mjs";
import { page, payload } from "./payload.mjs";

export const p = (text) => text.split(" ").map((name) => `program|${name}|/opt/app|/src/app.c|7`);
export const STACKS = [
  [p("main alpha leaf"), 10],
  [p("main alpha"), 30],
  [p("main beta leaf"), 20],
  [p("main beta leaf").concat(["kernel|vfs_read|[kernel.kallsyms]"]), 20],
  [p("main gamma"), 20],
];
export const FACTS = { title: "app --fast", command: "app --fast", complete: 99, lost: 3, event: "cpu-clock", hz: 999 };

/** Opens a page made of these stacks. */
export const open = (stacks, facts, options, hash) => openData(payload(stacks, facts), options, hash);

/** Opens a page with these data; any error in it or any request fails the test. */
export async function openData(data, options = {}, hash = "") {
  const path = join(directory, `${Math.random().toString(36).slice(2)}.html`);
  await writeFile(path, await page(data));
  const { context, tab, wrong } = await watched((url) => /^(file|data|blob):/.test(url), { viewport: { width: 1000, height: 700 }, ...options });
  await tab.goto(`file://${path}${hash}`);
  await settled(tab);
  const at = async (fraction, row) => {
    const box = await tab.locator("#graph canvas").boundingBox();
    return [box.x + fraction * box.width, box.y + box.height - (row + 0.5) * (options.hasTouch ? 27 : 20)];
  };
  return {
    tab,
    path,
    /** Clicks the box at a fraction of the width in a row counted from the floor. */
    click: async (fraction, row) => tab.mouse.click(...(await at(fraction, row))),
    point: async (fraction, row) => tab.mouse.move(...(await at(fraction, row))),
    tap: async (fraction, row) => tab.touchscreen.tap(...(await at(fraction, row))),
    name: () => tab.locator("#details .name").textContent(),
    numbers: async () => (await tab.locator("#details .numbers > div").allTextContents()).join(", "),
    matched: () => tab.locator(".matched").textContent(),
    hash: () => tab.evaluate(() => decodeURIComponent(location.hash)),
    settle: () => settled(tab),
    shot: async (name) => shots && (await tab.screenshot({ path: join(shots, `${name}.png`) })),
    close: async () => {
      assert.deepEqual(wrong, []);
      await context.close();
    },
  };
}
