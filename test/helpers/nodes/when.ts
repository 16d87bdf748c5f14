/** Tests with requirements. Without them, the tests are skipped, with the reason in the title. */
import test, { type ImplementationFn } from "ava";

export { isInstalled, succeeds, whyNot, whyNotInstalled } from "../process/programs.js";

/** Declares a test. */
type Declare = (title: string, implementation: ImplementationFn<[]>) => void;

/** Declares tests and hooks with requirements. */
export interface ConditionalTest extends Declare {
  readonly serial: Declare;
  before(prepare: ImplementationFn<[]>): void;
  /** Runs even after failed tests. */
  after(cleanUp: ImplementationFn<[]>): void;
}

/**
 * Returns AVA's `test`, or a function that skips tests if a requirement is missing.
 *
 * @param missing - The reason that the tests cannot run; undefined if they can.
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
