// Starts the page: that of a server, or one in a file with its answers inside.

import { serverAbout } from "./api/client";
import { packetOf } from "./api/packet";
import { fileSource, serverSource } from "./api/source";
import { Shell } from "./views/shell";
import { showStore } from "./views/store";
import { el } from "./widgets/dom";

async function start(): Promise<void> {
  const packet = await packetOf(document);
  performance.mark("plumb-unpacked");
  if (packet) {
    new Shell(fileSource(packet));
    return;
  }
  const about = await serverAbout();
  if (about.serves === "store") showStore(about);
  else new Shell(await serverSource(about));
}

start().catch((error: unknown) => {
  const message = error instanceof Error ? error.message : String(error);
  document.body.replaceChildren(el("p", { class: "problem", role: "alert" }, message));
});
