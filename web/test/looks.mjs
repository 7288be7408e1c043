// How the built page looks in a real browser: on a phone, in the dark, on paper, at any scale, and whether texts have contrast. Needs what browser.mjs
// needs.

import assert from "node:assert/strict";
import { run } from "./harness.mjs";
import { FACTS, STACKS, open, p } from "./picture.mjs";

const tests = {
  "on a phone a tap selects, two taps zoom, nothing sticks out": async () => {
    const phone = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 };
    const long = [...p("main"), "program|std::map<std::string, std::vector<std::pair<int, double> > >::emplace_hint|/opt/app"];
    const it = await open([...STACKS, [long, 10]], FACTS, phone);
    const before = await it.tab.locator("#graph canvas").boundingBox();
    await it.tap(0.5, 2);
    assert.equal(await it.name(), "beta");
    assert.deepEqual(await it.tab.locator("#graph canvas").boundingBox(), before, "the second tap meets the same box");
    assert.equal(await it.hash(), "");
    assert.equal(await it.tab.getByRole("button", { name: "Zoom to this box" }).isVisible(), true);
    // Two taps belong together however long this machine takes from one to the next.
    await it.tab.evaluate((now) => (performance.now = () => now), await it.tab.evaluate(() => performance.now()));
    await it.tap(0.95, 2);
    await it.shot("phone");
    await it.tap(0.95, 2);
    await it.tap(0.95, 2);
    await it.settle();
    assert.match(await it.hash(), /zoom/);
    const wide = await it.tab.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= 360, `${wide} pixels wide`);
    const small = await it.tab.evaluate(() =>
      [...document.querySelectorAll("body *")].filter((e) => e.textContent && parseFloat(getComputedStyle(e).fontSize) < 12).length,
    );
    assert.equal(small, 0, "no letters below 12 pixels");
    await it.close();
  },

  "dark when the system is": async () => {
    const it = await open(STACKS, FACTS, { colorScheme: "dark" });
    assert.equal(await it.tab.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(23, 25, 29)");
    await it.shot("dark");
    await it.close();
  },

  "on paper everything is there, dark on white": async () => {
    const deep = Array.from({ length: 100 }, (_, i) => `program|f${i}`);
    const it = await open([[deep, 10]], FACTS, { colorScheme: "dark", viewport: { width: 800, height: 500 } });
    await it.tab.emulateMedia({ media: "print" });
    const paper = await it.tab.evaluate(() => {
      dispatchEvent(new Event("beforeprint"));
      const canvas = document.querySelector("#graph canvas");
      const [r] = canvas.getContext("2d").getImageData(canvas.width - 1, 0, 1, 1).data;
      return { height: canvas.height, r, body: getComputedStyle(document.body).backgroundColor };
    });
    assert.ok(paper.height >= 101 * 20, `${paper.height} pixels high`);
    assert.ok(paper.r > 200 && paper.body === "rgb(255, 255, 255)", JSON.stringify(paper));
    await it.tab.evaluate(() => dispatchEvent(new Event("afterprint")));
    await it.tab.emulateMedia({ media: "screen" });
    await it.settle();
    assert.ok((await it.tab.evaluate(() => document.querySelector("#graph canvas").height)) < 500);
    await it.close();
  },

  "texts have contrast in both themes": async () => {
    for (const colorScheme of ["light", "dark"]) {
      const kinds = ["group", "program", "inlined", "library", "jit", "kernel", "missing", "fault", "process", "interrupt"];
      const stacks = kinds.flatMap((kind) => Array.from({ length: 12 }, (_, i) => [[`${kind}|WWWWWWWWWW${i}`], 1]));
      const it = await open(stacks, FACTS, { colorScheme, viewport: { width: 12000, height: 400 } });
      const worst = await it.tab.evaluate(() => {
        const canvas = document.querySelector("#graph canvas");
        const context = canvas.getContext("2d");
        const light = (r, g, b) => {
          const [x, y, z] = [r, g, b].map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
          return 0.2126 * x + 0.7152 * y + 0.0722 * z;
        };
        let least = 99;
        const dark = document.documentElement.dataset.theme === "dark";
        const text = dark ? light(0xf3, 0xf1, 0xed) : light(0x1b, 0x1d, 0x21);
        for (let i = 0; i < 120; i++) {
          // The right end of a box, where no letter is.
          const [r, g, b] = context.getImageData(((i + 1) * canvas.width) / 120 - 8, canvas.height - 30, 1, 1).data;
          const fill = light(r, g, b);
          least = Math.min(least, (Math.max(fill, text) + 0.05) / (Math.min(fill, text) + 0.05));
        }
        return least;
      });
      assert.ok(worst >= 4.5, `${colorScheme}: ${worst.toFixed(2)}`);
      await it.close();
    }
  },

  "boxes too narrow for a name have their colours and their gaps, at any scale": async () => {
    const wide = (i) => [p("main").concat([`${i % 2 ? "kernel" : "program"}|f${String(i).padStart(3, "0")}`]), 1];
    for (const deviceScaleFactor of [1, 1.25, 2]) {
      const it = await open(Array.from({ length: 120 }, (_, i) => wide(i)), FACTS, { deviceScaleFactor });
      const seen = await it.tab.evaluate(() => {
        const canvas = document.querySelector("#graph canvas");
        const scale = canvas.width / canvas.clientWidth;
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        const at = (x, y) => [...data.subarray(4 * (Math.floor(y * scale) * canvas.width + Math.floor(x * scale))).subarray(0, 3)];
        const box = canvas.clientWidth / 120;
        const floor = canvas.clientHeight - 40;
        const kinds = Array.from({ length: 120 }, (_, i) => at((i + 0.5) * box, floor - 10)).map(([red, , blue]) => (red > blue ? "program" : "kernel"));
        return { kinds, row: at(60.5 * box, floor - 3), gap: at(60.5 * box, floor - 0.5), background: at(10, 10) };
      });
      assert.deepEqual(seen.kinds, Array.from({ length: 120 }, (_, i) => (i % 2 ? "kernel" : "program")));
      assert.notDeepEqual(seen.row, seen.background);
      // At a scale that is no whole number a gap shares its pixels with what is beside it.
      if (deviceScaleFactor !== 1.25) assert.deepEqual(seen.gap, seen.background);
      await it.close();
    }
  },
};

await run(tests);
