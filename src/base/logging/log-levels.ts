/** Levels of `--log-level`. */
export const logLevels = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;

/** One of them. */
export type LogLevelName = (typeof logLevels)[number];
