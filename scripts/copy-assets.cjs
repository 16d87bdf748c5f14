/** Puts what pages are made of beside the compiled code. */
const { cpSync } = require("node:fs");

cpSync("pages", "dist/assets", { recursive: true });
