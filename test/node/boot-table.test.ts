/** The boot table: type checks, the order of its rows, and the rows that a dormant node defers. */
import test, { type ExecutionContext } from "ava";
import { SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { createBootProgress } from "../../src/health/boot-progress.js";
import { createSubsystems, subsystemNames } from "../../src/health/subsystems.js";
import { bootTable } from "../../src/node/boot.js";
import { BootTable, countSteps, createBoot } from "../../src/node/lifecycle/boot-table.js";

interface InitialContext {
  readonly port: number;
}

const createTable = (): BootTable<InitialContext> => BootTable.of<InitialContext>();

test("rows with a missing dependency, or a value that exists already, do not compile", (t) => {
  // The compiler is the test: it must report an error at each of these lines.
  /* oxlint-disable typescript/no-unsafe-return, typescript/no-unsafe-call */
  const { rows } = createTable()
    // @ts-expect-error -- no earlier row provides a key
    .step({ name: "early", needs: ["key"], provides: [], run: () => undefined })
    .step({ name: "key", needs: [], provides: ["key"], run: () => ({ key: "abc" }) })
    .step({ name: "late", needs: ["key", "port"], provides: [], run: ({ key, port }) => key.repeat(port) })
    // @ts-expect-error -- a key is not a number
    .step({ name: "wrong", needs: ["key"], provides: [], run: ({ key }) => key.toFixed() })
    // @ts-expect-error -- only the values in `needs` are passed
    .step({ name: "greedy", needs: ["port"], provides: [], run: ({ key }) => key })
    // @ts-expect-error -- the row declares a door, and returns none
    .step({ name: "empty", needs: [], provides: ["door"], run: () => ({ window: 1 }) })
    // @ts-expect-error -- an earlier row provides a key already
    .step({ name: "twice", needs: [], provides: ["key"], run: () => ({ key: "def" }) });
  /* oxlint-enable typescript/no-unsafe-return, typescript/no-unsafe-call */
  t.is(countSteps(rows), 7);
});

test("a row that may be skipped requires `otherwise` for the values it provides", (t) => {
  const row = { name: "mcp", needs: [], provides: ["door"], run: () => ({ door: 1 }) } as const;
  t.throws(() => createTable().step({ ...row, whenFailed: "go on" }), { message: /mcp may be left out/ });
  t.throws(() => createTable().step({ ...row, whenDormant: "wait" }), { message: /mcp may be left out/ });
  t.notThrows(() => createTable().step({ ...row, whenFailed: "go on", otherwise: () => ({ door: 2 }) }));
});

interface SetUp<C extends object> {
  readonly table: BootTable<C>;
  isDormant?: boolean;
}

function setUp<C extends object>(t: ExecutionContext, { table, isDormant = false }: SetUp<C>) {
  const subsystems = createSubsystems(Date.now);
  const progress = createBootProgress(countSteps(table.rows), subsystems);
  const controller = new AbortController();
  t.teardown(() => controller.abort());
  const { signal } = controller;
  const boot = createBoot({ table, progress, subsystems, isDormant: () => isDormant, signal });
  return { boot, progress, subsystems, abort: () => controller.abort(new Error("enough")) };
}

test("rows run in order, with the values of earlier rows", async (t) => {
  const table = createTable()
    .step({ name: "one", needs: ["port"], provides: ["two"], run: ({ port }) => ({ two: port + 1 }) })
    .part({ name: "quiet", needs: ["two"], provides: ["three"], run: ({ two }) => Promise.resolve({ three: two + 1 }) })
    .step({
      name: "last",
      needs: ["two", "three"],
      provides: ["sum"],
      run: ({ two, three }) => ({ sum: two + three }),
    });
  const { boot, progress } = setUp(t, { table });
  t.deepEqual(await boot.run({ port: 1 }), { port: 1, two: 2, three: 3, sum: 5 });
  t.like(progress.state(), { complete: true, stepsTotal: 2, stepsReady: 2 });
});

test("a failure ends the boot, unless the row may fail", async (t) => {
  const fail = (): never => {
    throw new Error("no");
  };
  const lenient = createTable().step({
    ...{ name: "chain", needs: [], provides: ["head"], whenFailed: "go on" as const },
    run: (): { head: number | undefined } => fail(),
    otherwise: () => ({ head: undefined }),
  });
  const survived = setUp(t, { table: lenient });
  t.is((await survived.boot.run({ port: 1 })).head, undefined);
  t.is(survived.subsystems.get("chain").status, SubsystemStatus.FAILED);
  const strict = setUp(t, { table: createTable().step({ name: "rpc", needs: [], provides: [], run: fail }) });
  await t.throwsAsync(strict.boot.run({ port: 1 }), { message: "no" });
});

test("a dormant node defers rows, and later runs them in the same order", async (t) => {
  const ran: string[] = [];
  const note = (name: string) => () => void ran.push(name);
  const table = createTable()
    .step({ name: "mcp", needs: [], provides: [], whenDormant: "wait", run: note("mcp") })
    .step({ name: "omni", needs: [], provides: [], run: note("omni") })
    .elsewhere({ name: "l2ps", reason: "another process runs it", whenDormant: "wait" })
    .step({
      ...{ name: "metrics", needs: [], provides: [], whenDormant: "wait" as const },
      ...{ notEnabled: () => "not wanted", run: note("metrics") },
    })
    .step({ name: "main_loop", needs: [], provides: [], whenDormant: "wait", run: note("main_loop") });
  const { boot, progress, subsystems } = setUp(t, { table, isDormant: true });
  await boot.run({ port: 1 });
  t.deepEqual(ran, ["omni"]);
  t.like(progress.state(), { complete: true, stepsReady: 1, stepsSkipped: 4 });
  t.regex(subsystems.get("l2ps").extra?.reason ?? "", /dormant/);
  t.like(subsystems.get("metrics"), { enabled: false, extra: { reason: "not wanted" } });
  t.like(subsystems.get("mcp"), { enabled: true, status: SubsystemStatus.SKIPPED });
  await boot.runDeferred();
  t.deepEqual(ran, ["omni", "mcp", "main_loop"]);
  t.like(progress.state(), { complete: true, stepsReady: 3, stepsSkipped: 2 });
  t.like(subsystems.get("l2ps"), { status: SubsystemStatus.SKIPPED, extra: { reason: "another process runs it" } });
});

test("an aborted boot does not wait for the running row", async (t) => {
  const table = createTable()
    .step({ name: "slow", needs: [], provides: [], run: () => new Promise(() => undefined) })
    .step({ name: "never", needs: [], provides: [], run: () => t.fail() });
  const { boot, abort } = setUp(t, { table });
  const running = boot.run({ port: 1 });
  setImmediate(abort);
  await t.throwsAsync(running, { message: "enough" });
});

test("the boot table of a node provides each value before it is needed, and has unique names", (t) => {
  const known = new Set(["core", "acquiredLease"]);
  for (const { name, needs, provides } of bootTable.rows) {
    for (const need of needs) {
      t.true(known.has(need), `${name} needs ${need}`);
    }
    provides.forEach((provided) => known.add(provided));
    // Split a row that needs more values.
    t.true(needs.length <= 11, `${name} needs ${needs.length} values`);
  }
  const names = bootTable.rows.map(({ name }) => name);
  t.deepEqual(
    subsystemNames.filter((name) => !names.includes(name)),
    [],
    "each subsystem has a step",
  );
  t.is(new Set(names).size, names.length);
});
