/** Script of the header and the footer on /status and /docs. The explorer includes it in its own script. */
import { createHttp } from "./http.js";
import { startShell } from "./shell.js";

startShell(createHttp(location));
