import fast from "./ava.config.js";

// What kills processes, fills disks, waits for clocks, or runs long documents and many seeds.
export default { ...fast, files: ["dist/test/**/*.slow.js"], timeout: "5m", concurrency: 4 };
