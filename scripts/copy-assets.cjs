/** Puts what pages are made of beside the compiled code. */
const { cpSync } = require("node:fs");

const rapidoc = "node_modules/rapidoc/dist/rapidoc-min.js";

cpSync(rapidoc, "dist/assets/rapidoc.js");
cpSync(`${rapidoc}.LICENSE.txt`, "dist/assets/rapidoc.js.LICENSE.txt");
cpSync("pages", "dist/assets", { recursive: true });
