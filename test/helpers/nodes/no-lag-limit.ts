import { defaultOverload } from "../../../src/edge/concurrency.js";

/** Overload limits without a maximum event-loop lag, because a busy test machine always lags. */
export const noLagLimit = { ...defaultOverload, maxLagMs: Infinity };
