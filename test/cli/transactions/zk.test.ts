import test from "ava";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { genesisOf, testKey, writeKey } from "../../helpers/chain/keys.js";
import { proofJson, verificationKeyJson } from "../../helpers/chain/groth16.js";
import { askJson } from "../../helpers/wire/plain-client.js";
import { type CliResult, runCli } from "../../helpers/nodes/run-cli.js";
import { startTestNode } from "../../helpers/nodes/start-node.js";
import { type Teardown, temporaryDirectory } from "../../helpers/nodes/teardown.js";

const element = (value: number): string => `0x${value.toString(16).padStart(64, "0")}`;

/** Starts a node whose genesis has a verification key. Returns a runner of zk commands with the key of Alice. */
async function setUp(t: Teardown) {
  const dir = await temporaryDirectory(t);
  const genesis = { ...(JSON.parse(genesisOf(testKey(1))) as object), zk: { verificationKey: verificationKeyJson } };
  await writeFile(join(dir, "genesis.json"), JSON.stringify(genesis));
  await writeKey(join(dir, "identity.key"), testKey(1));
  await writeKey(join(dir, "alice.key"), testKey(2));
  const node = await startTestNode(t, { genesis: "genesis.json" }, dir);
  const env = { GATEHOUSE_NODE: node.rpcUrl, GATEHOUSE_KEY: join(dir, "alice.key") };
  return { dir, node, zk: async (...args: string[]): Promise<CliResult> => await runCli(["zk", ...args], { env }) };
}

test("zk commands add commitments, fetch and verify a proof, and spend a nullifier with a Groth16 proof", async (t) => {
  const { dir, node, zk } = await setUp(t);
  const file = join(dir, "proof.json");
  for (const value of [42, 43]) {
    const { code, stdout, stderr } = await zk("commit", element(value));
    t.is(code, 0, stderr);
    t.regex(stdout, new RegExp(`^${element(value)}\ntransaction 0x[0-9a-f]{64} in block \\d+\n$`));
  }
  t.like(await zk("commit", element(42)), {
    code: 1,
    stderr: "gatehouse: The node rejected the request: The commitment is in the tree already. (ALREADY_EXISTS)\n",
  });
  t.like(await zk("commit", "42"), { code: 1 });

  const fetched = await zk("proof", element(42), "--out", file);
  t.is(fetched.code, 0, fetched.stderr);
  t.regex(fetched.stdout, /^LEAF +BLOCK +ROOT\n0 +2 +0x[0-9a-f]{64}\nsaved to /);
  const verified = await zk("verify", file);
  t.is(verified.code, 0, verified.stderr);
  const { rootHash } = await askJson<{ rootHash: string }>(node.port, "/zk/merkle-root");
  t.is(verified.stdout, `valid: ${element(42)} is leaf 0 under the root ${rootHash}\n`);
  t.deepEqual(JSON.parse((await zk("verify", file, "--json", "--root", rootHash)).stdout), {
    valid: true,
    commitment: element(42),
    leafIndex: 0,
    root: rootHash,
  });
  t.like(await zk("verify", file, "--root", element(1)), { code: 1 });

  // The root before the second commitment is still known.
  const older = (await askJson<{ rootHash: string }>(node.port, "/zk/merkle-root?block=1")).rootHash;
  const atOlderRoot = await zk("proof", element(42), "--root", older, "--json");
  t.is((JSON.parse(atOlderRoot.stdout) as { proof: { root: string } }).proof.root, older);
  t.like(await zk("proof", element(43), "--root", older), {
    code: 1,
    stderr:
      "gatehouse: The node rejected the request: The commitment is in the tree, but came after this root. (NOT_FOUND)\n",
  });

  const groth16 = join(dir, "groth16.json");
  await writeFile(groth16, JSON.stringify(proofJson([7n, BigInt(rootHash)])));
  t.like(await zk("nullify", element(8), "--proof", groth16, "--root", rootHash), {
    code: 1,
    stderr:
      "gatehouse: The node rejected the request: The proof is not valid for this nullifier and root. (INVALID_PROOF)\n",
  });
  t.like(await zk("nullify", element(7)), { code: 1 });
  const spent = await zk("nullify", element(7), "--proof", groth16, "--root", rootHash, "--json");
  t.like(JSON.parse(spent.stdout), { nullifierHash: element(7), status: "included" });
  t.like(await askJson(node.port, `/zk/nullifier/${element(7)}`), { used: true });
  t.regex((await zk("nullify", element(7), "--proof", groth16, "--root", rootHash)).stderr, /spent already, in block/);
});

test("zk verify rejects a changed proof with code 1, and an invalid file with code 2", async (t) => {
  const { dir, zk } = await setUp(t);
  await zk("commit", element(42));
  const file = join(dir, "proof.json");
  await zk("proof", element(42), "--out", file);
  interface Saved {
    commitment: string;
    proof: { siblings: string[][]; pathIndices: number[]; root: string; leaf: string; leafIndex: number };
  }
  const changes: readonly (readonly [code: number, stderr: RegExp, change: (saved: Saved) => unknown])[] = [
    [1, /leads to another root than the stated one/, ({ proof }) => (proof.siblings[19] = [element(1)])],
    [1, /leads to another root than the stated one/, ({ proof }) => (proof.root = element(1))],
    [1, /another leaf/, ({ proof }) => (proof.leaf = element(1))],
    [1, /path does not match its leaf index/, ({ proof }) => (proof.leafIndex = 1)],
    [1, /path does not match its leaf index/, ({ proof }) => (proof.pathIndices[3] = 1)],
    [2, /proof.leafIndex/, ({ proof }) => (proof.leafIndex = 2 ** 20)],
    [2, /proof.siblings/, ({ proof }) => proof.siblings.pop()],
    [2, /proof.siblings.0.0/, ({ proof }) => (proof.siblings[0] = [`0x${"f".repeat(64)}`])],
    [2, /commitment/, (saved) => (saved.commitment = "0x1")],
  ];
  const changed = join(dir, "changed.json");
  for (const [code, stderr, change] of changes) {
    const saved = JSON.parse(await readFile(file, "utf8")) as Saved;
    change(saved);
    await writeFile(changed, JSON.stringify(saved));
    const result = await zk("verify", changed);
    t.is(result.code, code, result.stderr);
    t.regex(result.stderr, stderr);
  }
  t.like(await zk("verify", join(dir, "missing.json")), { code: 2 });
});

test("a genesis with an unusable verification key stops the start, and the error names the member", async (t) => {
  const dir = await temporaryDirectory(t);
  const genesis = { authorities: [], zk: { verificationKey: { ...verificationKeyJson, curve: "other" } } };
  await writeFile(join(dir, "genesis.json"), JSON.stringify(genesis));
  await t.throwsAsync(startTestNode(t, { genesis: "genesis.json" }, dir), {
    message: /^The genesis is invalid at zk.verificationKey. The verification key is not usable at curve/,
  });
});
