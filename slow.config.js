import fast from "./ava.config.js";

/** The files that take longest, which start first so that no one is left for the end. */
const longest = ["documents", "privacy", "standby", "campaign", "one-writer", "small-memory", "join", "busy"];
const rank = (file) => longest.findIndex((name) => file.endsWith(`/${name}.slow.js`)) >>> 0;

// What kills processes, fills disks, waits for clocks, floods a node, or runs documents and many seeds. Half of it is waiting.
export default {
  ...fast,
  files: ["dist/test/**/*.slow.js"],
  timeout: "5m",
  concurrency: 4,
  sortTestFiles: (a, b) => rank(a) - rank(b),
};
