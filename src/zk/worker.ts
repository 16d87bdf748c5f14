/** What the worker threads do: long arithmetic, which would keep everybody else waiting. */
import { lowerThreadPriority } from "../base/async/lower-thread-priority.js";
import { fold } from "./fold.js";
import { verifyGroth16 } from "./groth16.js";

lowerThreadPriority();

export { fold, verifyGroth16 };
