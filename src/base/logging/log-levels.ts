/** Levels of `--log-level`. */
export const logLevels = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;

/** Level of `--log-level`. */
export type LogLevelName = (typeof logLevels)[number];
