/** Tests that need what not every machine has: where it is missing they are skipped, and their titles say why. */
import test, { type ImplementationFn } from "ava";
import { spawnSync } from "node:child_process";

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

/** Why a program cannot be used here; undefined where it runs and succeeds. */
export function whyNot(program: string, ...args: readonly string[]): string | undefined {
  const { status, error, stderr } = spawnSync(program, args, { encoding: "utf8", timeout: 20_000 });
  if (error !== undefined) {
    return (error as NodeJS.ErrnoException).code === "ENOENT" ? `${program} is not installed` : error.message;
  }
  return status === 0 ? undefined : `${program}: ${stderr.trim().split("\n").at(-1)}`;
}

/** Why packages of the system are missed: those whose program or library is not there. */
export function whyNotInstalled(packages: Readonly<Record<string, boolean>>): string | undefined {
  const missing = Object.keys(packages).filter((name) => packages[name] === false);
  return missing.length === 0 ? undefined : `${missing.join(", ")} not installed`;
}

/** Whether a command can be run here and succeeds. */
export function succeeds(command: string, ...args: readonly string[]): boolean {
  return whyNot(command, ...args) === undefined;
}

/** Whether the shell finds a program. */
export function isInstalled(program: string): boolean {
  return succeeds("sh", "-c", 'command -v "$0"', program);
}
