/** What the worker threads do: long arithmetic, which would keep everybody else waiting. */
import { fold } from "./fold.js";
import { verifyGroth16 } from "./groth16.js";

export { fold, verifyGroth16 };
