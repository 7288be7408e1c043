// Time on the page of `plumb serve FILE`, in a real browser: the timeline and its intervals, the order of time, the heat map. Needs what served.mjs needs.

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { directory, ended, openAt, run, started } from "./harness.mjs";
import { drag, open } from "./served_data.mjs";

const tests = {
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

  "the timeline zooms by wheel, keys and buttons, a drag then selects within it, and Escape shows all again": async () => {
    const it = await open("?view=table");
    const lanes = await it.tab.locator(".lanes").boundingBox();
    const axis = () => it.tab.locator(".timeline .axis").textContent();
    const status = () => it.tab.locator(".timeline-head .hint").textContent();
    const all = await axis();
    await it.tab.mouse.move(lanes.x + 0.75 * lanes.width, lanes.y + 8);
    for (let turn = 0; turn < 4; turn++) await it.tab.mouse.wheel(0, -300);
    await it.settle();
    assert.match(await status(), /showing 70\d ms to 76\d ms/);
    await it.shot("timeline-zoomed");
    await drag(it.tab, ".lanes", [0.2, 0.2], [0.8, 0.2]);
    await it.settle();
    assert.match((await it.chips()).join(), /time 0\.7[01]\d*-0\.7[45]\d* s/);
    await it.tab.locator(".lanes canvas").focus();
    await it.tab.keyboard.press("Escape");
    await it.settle();
    assert.equal(await axis(), all);
    assert.equal((await it.chips()).length, 1, "the selection stays");
    await it.tab.keyboard.press("z");
    await it.settle();
    assert.match(await status(), /selected, showing 7[01]\d ms/);
    await it.tab.getByRole("button", { name: "Show the whole recording" }).click();
    await it.tab.locator(".lanes canvas").focus();
    await it.tab.keyboard.press("Escape");
    await it.settle();
    assert.deepEqual([await axis(), await it.chips()], [all, []]);
    await it.tab.getByRole("button", { name: "Zoom in" }).click();
    await it.settle();
    assert.match(await status(), /showing 250 ms to (749|750) ms/);
    assert.deepEqual(await it.faults(), []);
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
};

await run(tests);
