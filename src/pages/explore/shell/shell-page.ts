/** Script of the header and the footer on /status, /docs and /latest. The explorer starts them itself. */
import { byId, h } from "../dom.js";
import { createHttp } from "../http.js";
import { linkTo } from "../routes.js";
import { startShell } from "./shell.js";

startShell(createHttp(location));
// A key is in the memory of the explorer only, so that these pages cannot use one. They show what everyone may read.
byId("who").replaceChildren(h("a", { href: `explore${linkTo({ kind: "keys" })}` }, "Sign in"));
