// Builds dist/flame.html, the page that the command embeds: style and script inside, a place left for the data.
// The same source gives the same bytes. `--check` says whether the committed page is what the source builds;
// `--model` builds the pure part alone, for the unit tests.

import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { build } from "esbuild";

const here = (path) => new URL(path, import.meta.url).pathname;
const PAGE = here("dist/flame.html");

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

async function page() {
  const script = await bundle("src/main.ts", { format: "iife", minify: true });
  const style = await bundle("src/style.css", { minify: true });
  for (const text of [script, style]) {
    if (/<\/(script|style)|<!--/i.test(text)) throw new Error("the bundle would end its own element");
  }
  const policy = `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; img-src data:; base-uri 'none'; form-action 'none'`;
  const parts = { policy, style, script };
  const template = await readFile(here("src/page.html"), "utf8");
  // {{title}} and {{data}} stay: the command fills them in.
  return template.replace(/\{\{(policy|style|script)\}\}/g, (_, name) => parts[name]);
}

if (process.argv.includes("--model")) {
  const model = await bundle("src/model/index.ts", { format: "esm", platform: "neutral" });
  await mkdir(here("build"), { recursive: true });
  await writeFile(here("build/model.mjs"), model);
} else {
  const built = await page();
  if (process.argv.includes("--check")) {
    const committed = await readFile(PAGE, "utf8").catch(() => "");
    if (committed !== built) {
      console.error("web/dist/flame.html is not what web/src builds: run `npm run build` in web/ and commit it");
      process.exit(1);
    }
    console.log("web/dist/flame.html is up to date");
  } else {
    await mkdir(here("dist"), { recursive: true });
    await writeFile(PAGE, built);
    console.log(`web/dist/flame.html: ${built.length} bytes`);
  }
}
