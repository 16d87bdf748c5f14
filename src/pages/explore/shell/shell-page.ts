/** Script of the header and the footer on /status and /docs. The explorer starts them itself. */
import { createHttp } from "../http.js";
import { startShell } from "./shell.js";

startShell(createHttp(location));
