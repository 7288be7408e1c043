// Uses the page of `plumb serve FILE` in a real browser, before a real server: mouse, keyboard, finger, narrow screens. Needs Chromium and
// a built plumb ($PLUMB, target/debug or target/release); says so and leaves without failing where one is missing. Options: see harness.mjs.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { browser, directory, dropFile, ended, faults, plumb, run, started } from "./harness.mjs";
import { HOSTILE, VIEWS, base, open } from "./served_data.mjs";

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

  "waits are shown by kind, with idle threads apart": async () => {
    const sizes = [["wide", { viewport: { width: 1440, height: 900 } }], ["phone", { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }]];
    for (const [kind, options] of sizes) {
      for (const colorScheme of ["light", "dark"]) {
        const it = await open("?r=4&view=waits", { ...options, colorScheme });
        const rows = await it.rows();
        const titles = ["locks and conditions", "disk I/O", "timers"];
        assert.deepEqual(titles.map((title) => rows.findIndex((row) => row.endsWith(title))), [0, 1, 2], rows.join());
        assert.match(rows[0], /^63\.8%300 ms/);
        assert.match(await it.tab.locator("#view .lead").textContent(), /^Threads waited 470 ms in all/);
        assert.match(await it.tab.locator("#view .hint").textContent(), /Idle, not in these shares: 950 ms of 1 thread that waits for work \(pool\)/);
        await it.shot(`waits-${kind}-${colorScheme}`);
        assert.deepEqual(await it.faults(), []);
        assert.equal(await it.tab.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, kind);
        await it.close();
      }
    }
    const it = await open("?r=4&view=waits&tid=101");
    assert.equal(await it.tab.locator("#view .hint").count(), 0, "the other thread idles");
    await it.tab.getByRole("button", { name: "Length of waits over time" }).click();
    await it.settle();
    assert.match(await it.query(), /view=heat&detail=latency/);
    await it.close();
    const none = await open("?view=waits");
    assert.match(await none.tab.locator("#view .empty").textContent(), /plumb record --off-cpu/);
    await none.close();
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
