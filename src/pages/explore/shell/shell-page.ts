/** Script of the header and the footer on /status, /docs and /latest. The explorer starts them itself. */
import { h } from "../dom.js";
import { createNode } from "../node.js";
import { linkTo } from "../routes.js";
import { showReader } from "./reader.js";
import { startShell } from "./shell.js";

/** Client of the node, with the session of the reader. */
export const node = createNode(location);

startShell(node);
// Only the explorer has forms for keys.
showReader(node.session, () => h("a", { href: `explore${linkTo({ kind: "keys" })}` }, "Sign in"));
