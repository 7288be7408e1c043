// Builds the page that a server shows, dist/page.html with page.js and page.css beside it, and the same in one file, dist/offline.html:
// style and script inside, a place left for the data, which commands fill in.
// The same source gives the same bytes. `--check` says whether the committed files are what the source builds;
// `--model` builds the pure part alone, for the unit tests.

import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const here = (path) => new URL(path, import.meta.url).pathname;

/** Most bytes of the served page's files, compressed. */
const MOST = 300_000;

async function bundle(entry, options) {
  const result = await build({
    entryPoints: [here(entry)],
    bundle: true,
    write: false,
    target: ["es2022", "chrome103", "firefox113", "safari16.4"],
    legalComments: "none",
    charset: "ascii",
    logLevel: "warning",
    ...options,
  });
  return result.outputFiles[0].text.trim();
}

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** The page as one file: style and script inside, a place left for the data. */
async function offline(script, style) {
  for (const text of [script, style]) {
    if (/<\/(script|style)|<!--/i.test(text)) throw new Error("the bundle would end its own element");
  }
  const policy = `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; img-src data:; base-uri 'none'; form-action 'none'`;
  const parts = { policy, style, script };
  const template = await readFile(here("src/offline.html"), "utf8");
  // {{title}} and {{data}} stay: the command fills them in.
  return template.replace(/\{\{(policy|style|script)\}\}/g, (_, name) => parts[name]);
}

/** All files of dist, by name. */
async function files() {
  const script = await bundle("src/served.ts", { format: "iife", minify: true });
  const style = await bundle("src/served.css", { minify: true });
  const served = {
    "page.html": (await readFile(here("src/served.html"), "utf8")).trim() + "\n",
    "page.js": script + "\n",
    "page.css": style + "\n",
  };
  const size = Object.values(served).reduce((sum, text) => sum + gzipSync(text).length, 0);
  if (size > MOST) throw new Error(`the served page takes ${size} bytes compressed, more than ${MOST}`);
  console.log(`served page: ${size} bytes compressed`);
  return { "offline.html": await offline(script, style), ...served };
}

if (process.argv.includes("--model")) {
  const model = await bundle("src/model/index.ts", { format: "esm", platform: "neutral" });
  await mkdir(here("build"), { recursive: true });
  await writeFile(here("build/model.mjs"), model);
} else {
  const built = await files();
  if (process.argv.includes("--check")) {
    for (const [name, text] of Object.entries(built)) {
      const committed = await readFile(here(`dist/${name}`), "utf8").catch(() => "");
      if (committed === text) continue;
      console.error(`web/dist/${name} is not what web/src builds: run \`npm run build\` in web/ and commit it`);
      process.exit(1);
    }
    console.log("web/dist is up to date");
  } else {
    await mkdir(here("dist"), { recursive: true });
    for (const [name, text] of Object.entries(built)) await writeFile(here(`dist/${name}`), text);
    console.log(`web/dist: ${Object.entries(built).map(([name, text]) => `${name} ${text.length} bytes`).join(", ")}`);
  }
}
