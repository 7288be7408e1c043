// Five questions that people had, each answered on the page in at most five clicks: what docs/guide/five-questions.md says, done here, with
// real recordings of programs that do the same. Needs what served.mjs needs, a C compiler, and a machine that lets plumb record. `--shots DIR`
// makes the pictures of that page, and flame.png, docs/flame.png.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { browser, directory, plumb, run, settled, shots, skip, started } from "./harness.mjs";

const UNWIND = `
#include <stdint.h>
#define RULES 40000
static struct { uint64_t begin; int32_t offset; } rules[RULES];
static volatile uint64_t sum;
__attribute__((noinline)) static int find_rule(uint64_t pc) {
    int at = 0;
    while (at + 1 < RULES && rules[at + 1].begin <= pc)
        at++;
    return at;
}
__attribute__((noinline)) static uint64_t apply_rule(int rule, uint64_t sp) { return sp + rules[rule].offset; }
__attribute__((noinline)) static void unwind_frame(uint64_t pc) { sum += apply_rule(find_rule(pc), pc); }
__attribute__((noinline)) static void unwind_stack(int depth) { for (int i = 0; i < depth; i++) unwind_frame((uint64_t)(i * 2654435761u) % (RULES * 64)); }
int main(void) { for (int i = 0; i < RULES; i++) rules[i].begin = 64 * i, rules[i].offset = i % 128; for (int i = 0; i < 1600; i++) unwind_stack(18); }
`;
const HEAP = `
#define _DEFAULT_SOURCE
#include <unistd.h>
#include <string.h>
static volatile char *end;
__attribute__((noinline)) static void grow_buffer(void) { char *at = sbrk(65536); memset(at, 1, 65536); end = at; }
__attribute__((noinline)) static void drop_buffer(void) { sbrk(-65536); }
__attribute__((noinline)) static void decode_packet(void) { grow_buffer(); drop_buffer(); }
int main(void) { for (int i = 0; i < 20000; i++) decode_packet(); }
`;
const ALLOCATOR = `
#include <stdint.h>
static uint32_t next[4096], head; static volatile uint32_t used;
__attribute__((noinline)) static uint32_t size_class(uint32_t size) {
    uint32_t class = 0;
    while ((8u << class) < size)
        class++;
    return class;
}
__attribute__((noinline)) static uint32_t tiny_alloc(uint32_t size) {
    uint32_t at = head;
    head = next[at];
    return at + size_class(size) * 0;
}
__attribute__((noinline)) static void tiny_free(uint32_t at) { next[at] = head; head = at; }
int main(void) { for (uint32_t i = 0; i < 4095; i++) next[i] = i + 1; for (uint32_t i = 0; i < 60000000; i++) { uint32_t at = tiny_alloc(i % 1000); used += at; tiny_free(at); } }
`;
const SCANNER = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>
#include <sys/syscall.h>
static char buffer[8192];
__attribute__((noinline)) static void read_directory(const char *path) { int fd = open(path, O_RDONLY | O_DIRECTORY); while (syscall(SYS_getdents64, fd, buffer, sizeof buffer) > 0) { } close(fd); }
__attribute__((noinline)) static void list_processes(void) { read_directory("/proc"); }
int main(void) { for (int second = 0; second < 400; second++) list_processes(); }
`;

/** The program of the picture in README.md: sorts a copy of all words for each line. */
const WORDS = `
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>
using Words = std::map<std::string, int>;
__attribute__((noinline)) static std::vector<std::pair<std::string, int>> top(const Words &words) {
    std::vector<std::pair<std::string, int>> copy(words.begin(), words.end());
    std::sort(copy.begin(), copy.end(), [](const auto &a, const auto &b) { return a.second != b.second ? a.second > b.second : a.first < b.first; });
    return copy;
}
__attribute__((noinline)) static void count(Words &words, int i) { words["word " + std::to_string(i * 7919 % 3000)]++; }
int main() {
    Words words;
    size_t all = 0;
    for (int i = 0; i < 30000; i++) {
        count(words, i);
        if (i % 60 == 0)
            all += top(words).size();
    }
    return all == 0;
}
`;

function compile(name, text) {
  writeFileSync(join(directory, `${name}.c`), text.trim());
  const built = spawnSync("cc", ["-O1", "-g", "-fno-omit-frame-pointer", `${name}.c`, "-o", name], { cwd: directory });
  if (built.error) skip("no C compiler here");
  assert.equal(built.status, 0, String(built.stderr));
}

/** Records a command; without the rights to there is nothing to look at. */
function record(name, ...command) {
  const done = spawnSync(plumb(), ["record", "-o", `${name}.plumb`, "--", ...command], { cwd: directory });
  if (done.status !== 0) skip(`plumb cannot record here: ${String(done.stderr).trim().split("\n").at(-1)}`);
}

/** The page of a story: clicks are counted, and there are at most five. */
async function story(name, at, viewport = { width: 1000, height: 640 }) {
  const context = await browser.newContext({ viewport, reducedMotion: "reduce" });
  const tab = await context.newPage();
  let clicks = 0;
  await tab.goto(at);
  const settle = () => settled(tab);
  await settle();
  return {
    tab,
    text: () => tab.locator("#view").textContent(),
    click: async (what) => {
      await what.click();
      clicks++;
      await settle();
    },
    view: async function (title) {
      await this.click(tab.getByRole("tab", { name: title, exact: true }));
    },
    row: (words) => tab.locator("#view tbody tr", { hasText: words }).first(),
    end: async () => {
      if (shots) await tab.screenshot({ path: join(shots, `${name}.png`) });
      assert.ok(clicks <= 5, `${clicks} clicks`);
      console.log(`     ${clicks} clicks`);
      await context.close();
    },
  };
}

const tests = {
  "the picture of README.md: sorting takes nearly all of a word counter's time": async () => {
    writeFileSync(join(directory, "words.cpp"), WORDS.trim());
    const built = spawnSync("c++", ["-O2", "-g", "words.cpp", "-o", "words"], { cwd: directory });
    if (built.error) return;
    assert.equal(built.status, 0, String(built.stderr));
    record("words", "./words");
    const it = await story("flame", (await started("words.plumb")).at, { width: 1400, height: 1000 });
    await it.tab.locator("#toolbar input").fill("sort");
    await settled(it.tab);
    assert.match(await it.tab.locator(".matched").textContent(), /^[5-9]\d(\.\d)?% matched/);
    await it.tab.locator("#toolbar input").fill("");
    await it.tab.locator("#toolbar input").blur();
    await settled(it.tab);
    await it.end();
  },

  "a shell script is slow: it starts a process for each line": async () => {
    await writeFile(join(directory, "unpack.sh"), "for i in $(seq 400); do d=$(dirname texmf-dist/fonts/$i); done\n");
    record("script", "bash", "unpack.sh");
    const it = await story("script", (await started("script.plumb")).at);
    await it.view("Processes");
    assert.match(await it.row("dirname").textContent(), /400/);
    await it.end();
  },

  "an unwinder is slow: it looks its rules up one by one": async () => {
    compile("unwind", UNWIND);
    record("unwind", "./unwind");
    const it = await story("unwinder", (await started("unwind.plumb")).at);
    await it.view("Table");
    assert.match(await it.row("find_rule").textContent(), /^9\d\.\d%|^100%/);
    await it.click(it.row("find_rule"));
    assert.match(await it.tab.locator("section[aria-label=Callers]").textContent(), /unwind_frame/);
    await it.click(it.tab.getByRole("button", { name: /Source and assembly/ }));
    assert.match(await it.text(), /rules\[at \+ 1\]/);
    await it.end();
  },

  "time is in the kernel: which call, and who makes it": async () => {
    compile("decode", HEAP);
    record("heap", "./decode");
    const it = await story("kernel", (await started("heap.plumb")).at);
    await it.view("Kernel time");
    assert.match(await it.text(), /brk|page fault/i);
    await it.view("Call tree");
    assert.match(await it.text(), /decode_packet/);
    await it.end();
  },

  "a service that should idle reads /proc": async () => {
    compile("monitor", SCANNER);
    record("monitor", "./monitor");
    const { at } = await started("--no-agent", "--store", "stories");
    const pushed = spawnSync(plumb(), ["push", "monitor.plumb", "--service", "monitor", "--to", at.slice(0, -1)], { cwd: directory });
    assert.equal(pushed.status, 0, String(pushed.stderr));
    const it = await story("service", at);
    assert.match(await it.text(), /monitor/);
    await it.click(it.row("monitor"));
    await it.tab.locator("#graph canvas").waitFor();
    await it.view("Kernel time");
    assert.match(await it.row("getdents64").textContent(), /%/);
    await it.end();
  },

  "an allocator was optimized: is it worth going on?": async () => {
    compile("allocator", ALLOCATOR);
    record("allocator", "./allocator");
    const it = await story("allocator", (await started("allocator.plumb")).at);
    await it.view("Verdict");
    assert.match(await it.text(), /tiny_alloc|size_class|tiny_free/);
    await it.click(it.tab.locator("table[aria-label='Hot functions'] tbody tr").first());
    await it.click(it.tab.getByRole("button", { name: /Source and assembly/ }));
    await it.end();
  },
};

await run(tests);
