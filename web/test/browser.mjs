// Uses the built page in a real browser as a reader would: mouse, keyboard, finger. Needs Chromium; says so and leaves without failing where
// there is none. `--measure` prints how long things take; other options: see harness.mjs.

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { browser, directory, run } from "./harness.mjs";
import { large, page, payload, written } from "./payload.mjs";
import { FACTS, STACKS, open, openData, p } from "./picture.mjs";

const tests = {
  "the headline says what was recorded and how far it may be trusted": async () => {
    const it = await open(STACKS, FACTS);
    assert.match(await it.tab.locator(".facts-line").textContent(), /100 samples · 99.0% complete stacks · 3 samples lost/);
    assert.equal(await it.tab.locator(".facts-line .bad").textContent(), "3 samples lost");
    assert.equal(await it.tab.locator("header select").inputValue(), "0");
    assert.equal(await it.tab.locator("header option").textContent(), "app --fast");
    await it.close();
  },

  "pointing at a box tells all about it, clicking zooms, Back goes back": async () => {
    const it = await open(STACKS, FACTS);
    await it.point(0.1, 2);
    assert.equal(await it.name(), "alpha");
    assert.match(await it.numbers(), /samples40, CPU time40.0 ms, of all40.0%, self30.0%/);
    assert.match(await it.tab.locator(".where").textContent(), /program · \/opt\/app · \/src\/app.c:7/);
    assert.match(await it.tab.locator(".tip").textContent(), /alpha.*40.0%/);
    await it.click(0.5, 2);
    await it.settle();
    assert.equal(await it.name(), "beta");
    assert.match(await it.hash(), /^#zoom=/);
    // Zoomed: the caller below fills the width, what is above is inside.
    await it.point(0.01, 1);
    assert.equal(await it.name(), "main");
    await it.point(0.01, 3);
    assert.equal(await it.name(), "leaf");
    assert.match(await it.numbers(), /of zoomed100%/);
    await it.shot("zoomed");
    await it.tab.goBack();
    await it.settle();
    assert.equal(await it.hash(), "");
    await it.point(0.9, 2);
    assert.equal(await it.name(), "gamma");
    await it.tab.goForward();
    await it.settle();
    await it.point(0.9, 2);
    assert.equal(await it.name(), "beta");
    await it.close();
  },

  "by weight the heaviest is at the left, and a link keeps that": async () => {
    const it = await open(STACKS, FACTS);
    await it.point(0.01, 2);
    assert.equal(await it.name(), "alpha");
    await it.tab.getByLabel("Order of boxes").selectOption("weight");
    await it.settle();
    assert.equal(await it.hash(), "#order=weight");
    await it.point(0.5, 2);
    assert.equal(await it.name(), "beta");
    await it.point(0.9, 2);
    assert.equal(await it.name(), "gamma");
    await it.click(0.5, 2);
    await it.settle();
    await it.tab.keyboard.press("o");
    await it.settle();
    assert.equal(await it.name(), "beta", "what is zoomed to stays");
    assert.doesNotMatch(await it.hash(), /order/);
    await it.close();
  },

  "recursion is merged, and colours say the file": async () => {
    const f = (text) => text.split(" ").map((name) => `program|${name}|${name === "walk" ? "/opt/libwalk.so" : "/opt/app"}|/src/app.c|7`);
    const it = await open([[f("main walk visit walk visit"), 30], [f("main walk"), 10], [f("main loop loop loop"), 60]], FACTS);
    const box = await it.tab.locator("#graph canvas").boundingBox();
    const rows = async () => it.tab.evaluate(() => parseFloat(document.querySelector(".spacer").style.height) / 20);
    assert.equal(await rows(), 6);
    await it.tab.mouse.click(box.x + 0.9 * box.width, box.y + box.height - 50, { button: "right" });
    await it.tab.getByRole("menuitem", { name: "Merge its recursion" }).click();
    await it.settle();
    assert.match(await it.tab.locator("#crumb").textContent(), /recursion of walk merged/);
    // main, walk, visit: the loop is still as deep.
    assert.equal(await rows(), 5);
    await it.point(0.9, 2);
    assert.equal(await it.name(), "walk");
    assert.match(await it.numbers(), /samples40, .*self10.0%/);
    await it.tab.keyboard.press("r");
    await it.settle();
    assert.equal(await it.hash(), "#merge=all");
    await it.point(0.3, 2);
    assert.match(await it.numbers(), /samples60, .*self60.0%/, "all of the loop is in one box");
    await it.tab.keyboard.press("Escape");
    await it.tab.getByLabel("Colour by").selectOption("file");
    const legend = await it.tab.locator("#legend li").allTextContents();
    assert.deepEqual(legend, ["app 90.0%", "libwalk.so 10.0%"]);
    const at = async (fraction, row) => {
      const { width, height } = await it.tab.locator("#graph canvas").boundingBox();
      return it.tab.evaluate(([x, y]) => [...document.querySelector("#graph canvas").getContext("2d").getImageData(x, y, 1, 1).data], [fraction * width, height - row * 20 - 3]);
    };
    const [main, loop, walk] = [await at(0.3, 1), await at(0.3, 3), await at(0.9, 2)];
    assert.ok(main[0] > main[2] + 40 && loop[0] > loop[2] + 40, `one file is orange: ${main}, ${loop}`);
    assert.ok(walk[2] > walk[0] + 20, `the other is blue: ${walk}`);
    await it.shot("by-file");
    await it.close();
  },

  "a link shows the same again": async () => {
    const first = await open(STACKS, FACTS);
    await first.click(0.5, 2);
    await first.tab.keyboard.press("i");
    await first.tab.keyboard.press("/");
    await first.tab.keyboard.type("vfs");
    await first.settle();
    const hash = await first.tab.evaluate(() => location.hash);
    assert.match(hash, /view=icicle/);
    const second = await open(STACKS, FACTS, {}, hash);
    assert.equal(await second.tab.locator("#toolbar input").inputValue(), "vfs");
    assert.equal(await second.matched(), "20.0% matched, 50.0% of zoomed");
    assert.equal(await second.name(), "beta");
    assert.equal(await second.tab.getByText("Flame", { exact: true }).count(), 1);
    await first.close();
    await second.close();
  },

  "a search counts nothing twice, and goes from match to match": async () => {
    const it = await open(STACKS, FACTS);
    await it.tab.keyboard.press("/");
    await it.tab.keyboard.type("LEAF");
    await it.settle();
    assert.equal(await it.matched(), "50.0% matched");
    await it.shot("search");
    await it.tab.keyboard.press("Enter");
    assert.match(await it.numbers(), /samples10/);
    await it.tab.keyboard.press("Enter");
    assert.match(await it.numbers(), /samples40/);
    await it.tab.keyboard.press("Shift+Enter");
    assert.match(await it.numbers(), /samples10/);
    await it.tab.locator("#toolbar input").fill("");
    await it.tab.locator("#toolbar input").fill("^(main|leaf)$");
    await it.settle();
    assert.equal(await it.matched(), "0% matched");
    await it.tab.getByLabel("Regular expression").click();
    await it.settle();
    assert.equal(await it.matched(), "100% matched");
    await it.tab.locator("#toolbar input").fill("(");
    await it.settle();
    assert.equal(await it.matched(), "not a regular expression");
    await it.close();
  },

  "everything can be done with keys": async () => {
    const it = await open(STACKS, FACTS);
    await it.tab.locator("#graph canvas").focus();
    for (const key of ["ArrowUp", "ArrowUp", "ArrowUp"]) await it.tab.keyboard.press(key);
    assert.equal(await it.name(), "alpha");
    await it.tab.keyboard.press("ArrowRight");
    assert.equal(await it.name(), "beta");
    assert.match(await it.tab.locator(".spoken").textContent(), /^beta, program, 40 samples/);
    await it.tab.keyboard.press("Enter");
    await it.settle();
    assert.match(await it.hash(), /zoom/);
    await it.tab.keyboard.press("Backspace");
    await it.settle();
    assert.equal(await it.name(), "main");
    await it.tab.keyboard.press("Escape");
    assert.equal(await it.hash(), "");
    await it.tab.keyboard.press("?");
    assert.equal(await it.tab.locator("dialog[open]").count(), 1);
    await it.shot("help");
    await it.tab.keyboard.press("Escape");
    assert.equal(await it.tab.locator("dialog[open]").count(), 0);
    const theme = () => it.tab.evaluate(() => document.documentElement.dataset.theme);
    assert.equal(await theme(), "light");
    await it.tab.keyboard.press("d");
    assert.equal(await theme(), "dark");
    await it.close();
  },

  "all calls of a function come together, callers on the other side": async () => {
    const it = await open(STACKS, FACTS);
    await it.tab.mouse.click(0, 0);
    await it.point(0.05, 3);
    assert.equal(await it.name(), "leaf");
    const box = await it.tab.locator("#graph canvas").boundingBox();
    await it.tab.mouse.click(box.x + 20, box.y + box.height - 70, { button: "right" });
    await it.tab.getByRole("menuitem", { name: "All calls" }).click();
    await it.settle();
    assert.match(await it.tab.locator("#crumb").textContent(), /All calls of leaf \(50.0% of all\)/);
    assert.equal(await it.name(), "leaf");
    // From the floor: main, alpha and beta, leaf, vfs_read.
    await it.point(0.1, 1);
    assert.equal(await it.name(), "alpha");
    await it.point(0.1, 3);
    assert.equal(await it.name(), "vfs_read");
    assert.match(await it.numbers(), /of all20.0%, of its calls40.0%/);
    await it.shot("calls");
    const hash = await it.tab.evaluate(() => location.hash);
    const again = await open(STACKS, FACTS, {}, hash);
    assert.match(await again.tab.locator("#crumb").textContent(), /All calls of leaf/);
    await again.close();
    await it.tab.getByRole("button", { name: "Back to the whole picture" }).click();
    assert.equal(await it.tab.locator("#crumb").isVisible(), false);
    await it.close();
  },

  "a high picture opens at its root, and a zoom keeps callers in view": async () => {
    const deep = Array.from({ length: 300 }, (_, i) => `program|f${i}`);
    const it = await open([[deep, 10], [deep.slice(0, 200).concat("kernel|other"), 5], [p("main"), 5]], FACTS);
    for (const [press, row, name] of [
      [undefined, 0, "all"],
      [() => it.click(0.2, 5), 0, "all"],
      ["i", 0, undefined],
      ["i", 0, "all"],
    ]) {
      if (typeof press === "string") await it.tab.keyboard.press(press);
      else await press?.();
      await it.settle();
      await it.point(0.4, row);
      if (name) assert.equal(await it.name(), name);
    }
    // From the zoomed f4 up to a box far above, whose nearest callers stay.
    await it.tab.locator("#graph canvas").focus();
    for (let i = 0; i < 150; i++) await it.tab.keyboard.press("ArrowUp");
    assert.equal(await it.name(), "f154");
    await it.tab.keyboard.press("Enter");
    await it.settle();
    const box = await it.tab.locator("#graph canvas").boundingBox();
    const seen = [];
    for (let y = box.height - 5; y > 0; y -= 20) {
      await it.tab.mouse.move(box.x + 9, box.y + y);
      seen.push(await it.name());
    }
    assert.ok(seen.includes("f154") && seen.includes("f151") && seen.includes("f157"), seen.join(" "));
    await it.close();
  },

  "a difference shows what vanished, from either side, and colours no noise": async () => {
    const data = await written("diff.payload");
    const it = await openData(data);
    const colour = async (fraction, row) => {
      const box = await it.tab.locator("#graph canvas").boundingBox();
      const at = [fraction * box.width, box.height - (row + 0.15) * 20];
      return it.tab.evaluate(([x, y]) => {
        const canvas = document.querySelector("#graph canvas");
        const scale = canvas.width / canvas.clientWidth;
        return [...canvas.getContext("2d").getImageData(x * scale, y * scale, 1, 1).data].slice(0, 3);
      }, at);
    };
    const isBlue = ([r, , b]) => b > r + 60;
    const isRed = ([r, , b]) => r > b + 60;
    const isGrey = ([r, , b]) => Math.abs(r - b) < 20;
    assert.match(await it.tab.locator(".lead").textContent(), /^7.44 s in old.plumb, 3.34 s in new.plumb \(−4.10 s\)/);
    // Of 4717: find 10, fresh 300, getenv 4400.
    await it.point(0.5, 2);
    assert.equal(await it.name(), "getenv");
    assert.match(await it.numbers(), /base4.40 s \(59.1%\), new0 ns \(0%\), change−4.40 s \(−100%\), gone/);
    assert.ok(isBlue(await colour(0.5, 2)), `${await colour(0.5, 2)}`);
    assert.ok(isRed(await colour(0.04, 2)), `${await colour(0.04, 2)}`);
    await it.shot("diff");
    await it.tab.getByRole("button", { name: "Exchange" }).click();
    await it.point(0.5, 2);
    assert.match(await it.numbers(), /base0 ns \(0%\), new4.40 s \(59.1%\), change\+4.40 s, new/);
    assert.ok(isRed(await colour(0.5, 2)), `${await colour(0.5, 2)}`);
    await it.tab.getByRole("button", { name: "Show all code" }).click();
    // Of 7747: find 2000, fresh 300, getenv 4400, take 1005.
    await it.point(0.1, 2);
    assert.equal(await it.name(), "find");
    assert.match(await it.numbers(), /within noise/);
    assert.ok(isGrey(await colour(0.1, 2)), `${await colour(0.1, 2)}`);
    const hash = await it.tab.evaluate(() => location.hash);
    assert.match(hash, /swap=1&width=all/);
    await it.tab.keyboard.press("/");
    await it.tab.keyboard.type("getenv");
    await it.settle();
    assert.equal(await it.matched(), "56.8% matched");
    await it.close();
    const again = await openData(data, { colorScheme: "dark" }, hash);
    await again.point(0.1, 2);
    assert.equal(await again.name(), "find");
    await again.shot("diff-dark");
    await again.close();
    const phone = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 };
    const small = await openData(data, phone);
    await small.tap(0.5, 2);
    assert.equal(await small.name(), "getenv");
    await small.shot("diff-phone");
    const wide = await small.tab.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= 360, `${wide} pixels wide`);
    await small.close();
  },

  "names from a hostile file are text": async () => {
    const evil = "</script><script>document.title='owned'</script><img src=x onerror=document.title='owned'>";
    const it = await open([[[`program|${evil}`], 1]], { ...FACTS, title: evil, command: evil, warnings: [evil], filters: evil });
    await it.point(0.5, 1);
    assert.equal(await it.name(), evil);
    assert.equal(await it.tab.evaluate(() => document.querySelectorAll("img").length), 0);
    assert.equal(await it.tab.title(), "test");
    await it.close();
  },

  "a page without data says so": async () => {
    const path = join(directory, "empty.html");
    await writeFile(path, (await page(payload(STACKS, FACTS))).replace(/(id="packet">)[^<]*/, "$1"));
    const tab = await browser.newPage();
    await tab.goto(`file://${path}`);
    assert.match(await tab.locator(".problem").textContent(), /this file is damaged: its data has no header/);
    await tab.close();
  },

  "100,000 boxes open and zoom": async () => {
    const it = await open(large(100_000), FACTS, { viewport: { width: 1400, height: 900 }, reducedMotion: "no-preference" });
    const times = await it.tab.evaluate(async () => {
      const mark = (name) => performance.getEntriesByName(name).at(-1)?.startTime ?? 0;
      while (mark("plumb-drawn") === 0) await new Promise((done) => requestAnimationFrame(done));
      const decoded = mark("plumb-decoded");
      const drawn = mark("plumb-drawn");
      const canvas = document.querySelector("#graph canvas");
      canvas.focus();
      const press = (key) => canvas.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
      const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      for (let i = 0; i < 4; i++) press("ArrowUp");
      await frame();
      const start = performance.now();
      press("Enter");
      const handled = performance.now() - start;
      await frame();
      const zoomed = performance.now() - start;
      let longest = 0;
      for (let i = 0, before = performance.now(); i < 12; i++) {
        await new Promise((done) => requestAnimationFrame(done));
        longest = Math.max(longest, performance.now() - before);
        before = performance.now();
      }
      return { decoded, drawn, handled, zoomed, longest };
    });
    if (process.argv.includes("--measure")) {
      for (const [name, ms] of Object.entries(times)) console.log(`  ${name.padEnd(8)} ${ms.toFixed(0)} ms`);
    }
    await it.shot("large");
    // How long it takes is for --measure: a machine under test is rarely free. That it happens at all is asserted.
    assert.ok(times.decoded > 0 && times.drawn >= times.decoded, `decoded at ${times.decoded}, drawn at ${times.drawn}`);
    assert.match(await it.tab.evaluate(() => location.hash), /zoom=/);
    await it.close();
  },
};

await run(tests);
