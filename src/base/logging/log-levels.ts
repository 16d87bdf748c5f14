/** Levels of `--log-level`. */
export const logLevels = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;

export type LogLevelName = (typeof logLevels)[number];
