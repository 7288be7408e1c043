// Starts the page: that of a server, or one in a file with its answers inside.

import { serverAbout } from "./api/client";
import { packetOf } from "./api/packet";
import { fileSource, openedSource, serverSource } from "./api/source";
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
  const opened = new URLSearchParams(location.search).get("opened");
  if (about.serves === "store" && opened !== null) new Shell(await openedSource(about, opened));
  else if (about.serves === "store") showStore(about);
  else new Shell(await serverSource(about));
}

start().catch((error: unknown) => {
  const message = error instanceof Error ? error.message : String(error);
  document.body.replaceChildren(el("div", { class: "problem", role: "alert" }, el("p", {}, message), el("a", { href: location.pathname }, "Back to the first view")));
});
