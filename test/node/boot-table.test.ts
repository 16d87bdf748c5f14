/** The table of the boot: what compiles, in which order it is taken, what a dormant node leaves out. */
import test, { type ExecutionContext } from "ava";
import { SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { createBootProgress } from "../../src/health/boot-progress.js";
import { createSubsystems, subsystemNames } from "../../src/health/subsystems.js";
import { bootTable } from "../../src/node/boot.js";
import { BootTable, countSteps, createBoot } from "../../src/node/lifecycle/boot-table.js";

interface Beginning {
  readonly port: number;
}

const begin = (): BootTable<Beginning> => BootTable.of<Beginning>();

test("a row that needs what no earlier row provides does not compile, nor one that provides what is there", (t) => {
  // The compiler is the test: each of these lines is an error that it must find.
  /* oxlint-disable typescript/no-unsafe-return, typescript/no-unsafe-call */
  const { rows } = begin()
    // @ts-expect-error -- nobody provides a key
    .step({ name: "early", needs: ["key"], provides: [], run: () => undefined })
    .step({ name: "key", needs: [], provides: ["key"], run: () => ({ key: "abc" }) })
    .step({ name: "late", needs: ["key", "port"], provides: [], run: ({ key, port }) => key.repeat(port) })
    // @ts-expect-error -- a key is no number
    .step({ name: "wrong", needs: ["key"], provides: [], run: ({ key }) => key.toFixed() })
    // @ts-expect-error -- what was not asked for is not given
    .step({ name: "greedy", needs: ["port"], provides: [], run: ({ key }) => key })
    // @ts-expect-error -- it says that it provides a door, and gives none
    .step({ name: "empty", needs: [], provides: ["door"], run: () => ({ window: 1 }) })
    // @ts-expect-error -- a key is there already
    .step({ name: "twice", needs: [], provides: ["key"], run: () => ({ key: "def" }) });
  /* oxlint-enable typescript/no-unsafe-return, typescript/no-unsafe-call */
  t.is(countSteps(rows), 7);
});

test("a row that may be left out has to say what it provides otherwise", (t) => {
  const row = { name: "mcp", needs: [], provides: ["door"], run: () => ({ door: 1 }) } as const;
  t.throws(() => begin().step({ ...row, whenFailed: "go on" }), { message: /mcp may be left out/ });
  t.throws(() => begin().step({ ...row, whenDormant: "wait" }), { message: /mcp may be left out/ });
  t.notThrows(() => begin().step({ ...row, whenFailed: "go on", otherwise: () => ({ door: 2 }) }));
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

test("rows are taken in their order, with what those before them gave", async (t) => {
  const table = begin()
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

test("a failure ends the boot, unless the node can live without the step", async (t) => {
  const fail = (): never => {
    throw new Error("no");
  };
  const lenient = begin().step({
    ...{ name: "chain", needs: [], provides: ["head"], whenFailed: "go on" as const },
    run: (): { head: number | undefined } => fail(),
    otherwise: () => ({ head: undefined }),
  });
  const survived = setUp(t, { table: lenient });
  t.is((await survived.boot.run({ port: 1 })).head, undefined);
  t.is(survived.subsystems.get("chain").status, SubsystemStatus.FAILED);
  const strict = setUp(t, { table: begin().step({ name: "rpc", needs: [], provides: [], run: fail }) });
  await t.throwsAsync(strict.boot.run({ port: 1 }), { message: "no" });
});

test("a dormant node leaves out what waits, and makes up for it in the same order", async (t) => {
  const taken: string[] = [];
  const note = (name: string) => () => void taken.push(name);
  const table = begin()
    .step({ name: "mcp", needs: [], provides: [], whenDormant: "wait", run: note("mcp") })
    .step({ name: "omni", needs: [], provides: [], run: note("omni") })
    .elsewhere({ name: "l2ps", reason: "somebody else runs it", whenDormant: "wait" })
    .step({
      ...{ name: "metrics", needs: [], provides: [], whenDormant: "wait" as const },
      ...{ notEnabled: () => "not wanted", run: note("metrics") },
    })
    .step({ name: "main_loop", needs: [], provides: [], whenDormant: "wait", run: note("main_loop") });
  const { boot, progress, subsystems } = setUp(t, { table, isDormant: true });
  await boot.run({ port: 1 });
  t.deepEqual(taken, ["omni"]);
  t.like(progress.state(), { complete: true, stepsReady: 1, stepsSkipped: 4 });
  t.regex(subsystems.get("l2ps").extra?.reason ?? "", /dormant/);
  t.like(subsystems.get("metrics"), { enabled: false, extra: { reason: "not wanted" } });
  t.like(subsystems.get("mcp"), { enabled: true, status: SubsystemStatus.SKIPPED });
  await boot.runDeferred();
  t.deepEqual(taken, ["omni", "mcp", "main_loop"]);
  t.like(progress.state(), { complete: true, stepsReady: 3, stepsSkipped: 2 });
  t.like(subsystems.get("l2ps"), { status: SubsystemStatus.SKIPPED, extra: { reason: "somebody else runs it" } });
});

test("a boot that is told to stop waits for no row", async (t) => {
  const table = begin()
    .step({ name: "slow", needs: [], provides: [], run: () => new Promise(() => undefined) })
    .step({ name: "never", needs: [], provides: [], run: () => t.fail() });
  const { boot, abort } = setUp(t, { table });
  const running = boot.run({ port: 1 });
  setImmediate(abort);
  await t.throwsAsync(running, { message: "enough" });
});

test("the table of a node: every row can have what it needs, and each step has its own name", (t) => {
  const known = new Set(["core", "acquiredLease"]);
  for (const { name, needs, provides } of bootTable.rows) {
    for (const need of needs) {
      t.true(known.has(need), `${name} needs ${need}`);
    }
    provides.forEach((provided) => known.add(provided));
    // A row that needs more is several rows.
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
