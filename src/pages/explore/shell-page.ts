/** Script of the header and footer on pages that have a script of their own. */
import { createHttp } from "./http.js";
import { startShell } from "./shell.js";

startShell(createHttp(location));
