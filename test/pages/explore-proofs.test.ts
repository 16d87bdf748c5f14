/** The explorer reads messages by tables in place of descriptors: what it makes of proofs and bytes is what the client makes of them. */
import { fromBinary, type DescMessage, type JsonValue } from "@bufbuild/protobuf";
import test from "ava";
import { build } from "esbuild";
import { checkProof, type ProofError, questionOf, readProofJson, readProofNetwork } from "gatehouse-client";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { BlockHeaderSchema, HeadStatementSchema } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { GetProofResponseSchema, ProgramRecordSchema } from "../../gen/gatehouse/state/v1/state_pb.js";
import { messageTablesPlugin } from "../../tools/pages/explorer.js";
import { fileTeardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { createRandom } from "../helpers/wire/random-message.js";

interface Vector {
  readonly name: string;
  readonly answer: Readonly<Record<string, JsonValue>>;
  readonly seen?: { readonly number: string; readonly hash: string };
  readonly nowMs?: string;
}

const vectors = JSON.parse(await readFile("examples/vectors/proofs.json", "utf8")) as {
  readonly genesis: string;
  readonly network: string;
  readonly nowMs: string;
  readonly maxAgeS: number;
  readonly proofs: readonly Vector[];
  readonly refused: readonly Vector[];
};

/** What a script has of what is compared here. */
interface Built {
  readonly checkProof: typeof checkProof;
  readonly questionOf: typeof questionOf;
  readonly readProofJson: typeof readProofJson;
  readonly readProofNetwork: typeof readProofNetwork;
  readonly fromBinary: (table: unknown, bytes: Uint8Array) => object;
  readonly [schema: string]: unknown;
}

const schemas = { BlockHeaderSchema, HeadStatementSchema, ProgramRecordSchema, GetProofResponseSchema };
const file = fileTeardown();
let built: Built;

test.before(async () => {
  const outfile = join(await temporaryDirectory(file), "proofs.mjs");
  const { outputFiles } = await build({
    stdin: {
      contents: [
        'export { checkProof, questionOf } from "./client/src/proof/check.js";',
        'export { readProofJson } from "./client/src/proof/json.js";',
        'export { readProofNetwork } from "./client/src/proof/network.js";',
        'export { fromBinary } from "@bufbuild/protobuf";',
        'export { BlockHeaderSchema, HeadStatementSchema } from "./gen/gatehouse/chain/v1/block_pb.js";',
        'export { GetProofResponseSchema, ProgramRecordSchema } from "./gen/gatehouse/state/v1/state_pb.js";',
      ].join("\n"),
      loader: "ts",
      resolveDir: process.cwd(),
    },
    bundle: true,
    format: "esm",
    write: false,
    logLevel: "silent",
    plugins: [messageTablesPlugin],
  });
  await writeFile(outfile, outputFiles[0]!.contents);
  built = (await import(pathToFileURL(outfile).href)) as Built;
});

type Checks = Pick<Built, "checkProof" | "questionOf" | "readProofJson" | "readProofNetwork">;

/** What is proved, or the flaw, as text. */
function outcomeOf(checks: Checks, { answer, seen, nowMs }: Vector): string {
  try {
    const read = checks.readProofJson(JSON.stringify(answer));
    const state = checks.checkProof(checks.questionOf(read), read, {
      network: checks.readProofNetwork(vectors.genesis, vectors.network),
      nowMs: Number(nowMs ?? vectors.nowMs),
      maxAgeS: vectors.maxAgeS,
      seen: seen && {
        ...{ hash: seen.hash, number: BigInt(seen.number) },
        ...{ header: new Uint8Array(), signature: new Uint8Array() },
      },
    });
    return textOf(state);
  } catch (error) {
    const { flaw, message } = error as ProofError;
    return `${flaw}: ${message}`;
  }
}

function textOf(value: unknown): string {
  return JSON.stringify(value, (name, part: unknown) =>
    name === "$unknown"
      ? undefined
      : typeof part === "bigint"
        ? `${part}n`
        : part instanceof Uint8Array
          ? Buffer.from(part).toString("hex")
          : part instanceof Map
            ? [...(part as Map<unknown, unknown>)]
            : sorted(part),
  );
}

/** The library makes members in another order. */
function sorted(part: unknown): unknown {
  return typeof part === "object" && part !== null && !Array.isArray(part)
    ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
    : part;
}

test("each vector proves, or is refused, as the client says", (t) => {
  const client: Checks = { checkProof, questionOf, readProofJson, readProofNetwork };
  let proved = 0;
  for (const vector of [...vectors.proofs, ...vectors.refused]) {
    const outcome = outcomeOf(built, vector);
    t.is(outcome, outcomeOf(client, vector), vector.name);
    proved += outcome.startsWith("{") ? 1 : 0;
  }
  t.true(proved >= vectors.proofs.length, String(proved));
  t.true(vectors.refused.some((vector) => outcomeOf(built, vector).startsWith("signature:")));
});

test("any bytes are read, or refused, as the library does", (t) => {
  const next = createRandom(31);
  const random = (below: number): number => Math.floor(next() * below);
  const samples = vectors.proofs.flatMap(({ answer }) => findBytes(answer).map((text) => Buffer.from(text, "base64")));
  let read = 0;
  for (let i = 0; i < 20_000; i++) {
    const bytes = Buffer.from(samples[random(samples.length)]!);
    for (let flips = random(3); flips > 0 && bytes.length > 0; flips--) {
      bytes[random(bytes.length)]! ^= 1 << random(8);
    }
    const cut = bytes.subarray(0, random(4) === 0 ? random(bytes.length + 1) : bytes.length);
    const name = Object.keys(schemas)[random(4)] as keyof typeof schemas;
    const library = attempt(() => fromBinary(schemas[name] as DescMessage, cut));
    t.is(
      attempt(() => built.fromBinary(built[name], cut)),
      library,
      `${name} ${cut.toString("hex")}`,
    );
    read += library === undefined ? 0 : 1;
  }
  t.true(read > 1_000 && read < 19_900, String(read));
});

function attempt(read: () => object): string | undefined {
  try {
    return textOf(read());
  } catch {
    return undefined;
  }
}

/** Texts in base64 that are long enough to be messages. */
function findBytes(value: JsonValue): string[] {
  if (typeof value === "string") {
    return value.length > 40 && /^[A-Za-z0-9+/]+=*$/.test(value) ? [value] : [];
  }
  return typeof value === "object" && value !== null
    ? Object.values(value).flatMap((part) => findBytes(part as JsonValue))
    : [];
}
