/** Tests that need what not every machine has: where it is missing they are skipped, and their titles say why. */
import test, { type ImplementationFn } from "ava";

export { isInstalled, succeeds, whyNot, whyNotInstalled } from "./why-not.js";

/** Declares a test. */
type Declare = (title: string, implementation: ImplementationFn<[]>) => void;

/** Declares tests and hooks that need something. */
export interface ConditionalTest extends Declare {
  readonly serial: Declare;
  before(prepare: ImplementationFn<[]>): void;
  /** Runs whatever became of the tests. */
  after(cleanUp: ImplementationFn<[]>): void;
}

/**
 * AVA's `test`, or what stands for it where something is missing.
 *
 * @param missing - Why the tests cannot run here; undefined where they can.
 */
export function testUnless(missing: string | undefined): ConditionalTest {
  if (missing !== undefined) {
    const skip: Declare = (title, implementation) => test.skip(`${title} (skipped: ${missing})`, implementation);
    return Object.assign(skip, { serial: skip, before: () => undefined, after: () => undefined });
  }
  const declare: Declare = (title, implementation) => test(title, implementation);
  return Object.assign(declare, {
    serial: (title: string, implementation: ImplementationFn<[]>) => test.serial(title, implementation),
    before: (prepare: ImplementationFn<[]>) => test.before(prepare),
    after: (cleanUp: ImplementationFn<[]>) => test.after.always(cleanUp),
  });
}
