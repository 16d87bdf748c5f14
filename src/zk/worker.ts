/** Entry point of the worker threads. They execute long computations, which would block the event loop. */
import { lowerThreadPriority } from "../base/async/lower-thread-priority.js";
import { fold } from "./fold.js";
import { verifyGroth16 } from "./groth16.js";

lowerThreadPriority();

export { fold, verifyGroth16 };
