/** Types of the configuration. The build fails if a line below `@ts-expect-error` compiles. */
import test from "ava";
import { type Config, type ConfigSources, loadConfig, readSettings, type Settings } from "../../src/config/config.js";
import { declareOptions, type ValuesOf } from "../../src/config/declare.js";
import { oneOf, port, toggle } from "../../src/config/value-types.js";

/** Type `true` if two types are identical. Mutual assignability is not enough: `any` is assignable to every type. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- T makes the compiler compare A with B
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

const config: Config = loadConfig({ flags: {}, env: {}, cwd: "/srv/node" });

test("fields of the configuration have the declared types, and only those without a default may be undefined", (t) => {
  const same: readonly [
    Same<Config["rpcPort"], number>,
    Same<Config["controlPort"], number | undefined>,
    Same<Config["dataDir"], string>,
    Same<Config["genesisFile"], string | undefined>,
    Same<Config["omniTls"], boolean>,
    Same<Config["role"], "writer" | "reader" | "standby">,
    Same<Config["notaryKeys"], readonly string[]>,
  ] = [true, true, true, true, true, true, true];
  t.true(same.every(Boolean));
});

test("an unknown option cannot be read", (t) => {
  // @ts-expect-error -- there is no such option
  t.is(config.rpcProt, undefined);
  // @ts-expect-error -- the field has the unit in its name
  t.is(config.rateLimit, undefined);
});

test("an option cannot be read as a value of another type", (t) => {
  // @ts-expect-error -- a port is a number
  const rpcPort: string = config.rpcPort;
  t.is<unknown, unknown>(rpcPort, 53550);
  // @ts-expect-error -- it may be undefined
  const controlPort: number = config.controlPort;
  t.is<unknown, unknown>(controlPort, undefined);
  // @ts-expect-error -- author is not a role
  t.false(config.role === "author");
});

test("an unknown flag is a type error", (t) => {
  const flags: ConfigSources["flags"] = {
    "rpc-port": "1",
    // @ts-expect-error -- there is no such flag
    "rpc-prot": "1",
  };
  t.is(loadConfig({ flags, env: {}, cwd: "/" }).rpcPort, 1);
});

test("a setting has the name of its option, and accepts the values of the configuration file", (t) => {
  const same: readonly [
    Same<Settings["rpc-port"], number | string | undefined>,
    Same<Settings["trusted-proxies"], string | readonly string[] | undefined>,
    Same<Settings["role"], "writer" | "reader" | "standby" | undefined>,
    Same<Settings["omni-tls"], "on" | "off" | undefined>,
    Same<Settings["json"], boolean | "true" | "false" | undefined>,
  ] = [true, true, true, true, true];
  t.true(same.every(Boolean));
  const settings: Settings = {
    "rpc-port": 1,
    // @ts-expect-error -- there is no such option
    "rpc-prot": 1,
  };
  t.throws(() => readSettings(settings, "/"));
});

test("the flag, the variable and the type of an option follow from its declaration", (t) => {
  const declared = declareOptions({
    blockTimeMs: { name: "block-time", type: port, fallback: "1", description: "" },
    isQuiet: { env: "QUIET", type: toggle, description: "" },
    sealBy: { type: oneOf("WHO", ["one", "all"]), fallback: "one", description: "" },
  });
  const same: Same<
    ValuesOf<typeof declared>,
    { readonly blockTimeMs: number; readonly isQuiet: boolean | undefined; readonly sealBy: "one" | "all" }
  > = true;
  t.true(same);
  const names: readonly ["block-time", "is-quiet", "seal-by"] = [
    declared.blockTimeMs.name,
    declared.isQuiet.name,
    declared.sealBy.name,
  ];
  t.deepEqual<readonly string[], readonly string[]>(names, ["block-time", "is-quiet", "seal-by"]);
  t.deepEqual(
    Object.values(declared).map(({ env }) => env),
    ["GATEHOUSE_BLOCK_TIME", "QUIET", "GATEHOUSE_SEAL_BY"],
  );
});

test("a declaration requires a description and a type", (t) => {
  // @ts-expect-error -- without a description
  t.truthy(declareOptions({ a: { type: port } }));
  // @ts-expect-error -- without a type
  t.truthy(declareOptions({ a: { description: "" } }));
});
