import anyTest, { type ExecutionContext, type TestFn } from "ava";
import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { StorageService } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { createIdentify } from "../../src/edge/identity.js";
import { createCaller } from "../helpers/process/caller.js";
import { ask } from "../helpers/wire/plain-client.js";
import { connectEach, readFailure, type RpcClient, rpcProtocols } from "../helpers/wire/rpc-clients.js";
import { genesisOf, testKey } from "../helpers/chain/keys.js";
import { insertProgram, nameInHeader, seedDatabase } from "../helpers/chain/seed.js";
import { startTestNode, type TestNode } from "../helpers/nodes/start-node.js";
import { temporaryDirectory, fileTeardown } from "../helpers/nodes/teardown.js";
import { identityMessage } from "../../src/edge/identity.js";
import { forge, smallOrderKeys } from "../helpers/chain/weak-keys.js";

interface Context {
  readonly node: TestNode;
  readonly trusting: TestNode;
  /** Node that accepts only identities that name its network. */
  readonly strict: TestNode;
  /** Node without a genesis. */
  readonly bare: TestNode;
  readonly clients: Record<string, RpcClient>;
  readonly strictClients: Record<string, RpcClient>;
}
const test = anyTest as TestFn<Context>;

const owner = createCaller();
const friend = createCaller();
const address = `stor-${"1".repeat(40)}`;
const path = `/storage-program/${address}/field/secret`;
const authority = testKey(1);
const genesis = genesisOf(authority);
const network = `0x${createHash("sha256").update(genesis).digest("hex")}`;
const otherNetwork = `0x${"5".repeat(64)}`;
const teardown = fileTeardown();

test.before(async (t) => {
  const start = async (flags: Record<string, string>): Promise<TestNode> => {
    const dir = await temporaryDirectory(teardown);
    await seedDatabase(dir, async (database) => {
      await insertProgram(database, {
        address,
        owner: owner.publicKey,
        name: "private",
        mode: "owner",
        type: "object",
        data: '{"secret":1}',
        fields: [["secret", "number", "1"]],
        createdMs: 1,
      });
      if (flags["genesis"] !== undefined) {
        await writeFile(join(dir, "genesis.json"), genesis);
        await nameInHeader(database, authority);
      }
    });
    return await startTestNode(teardown, flags, dir);
  };
  const node = await start({ genesis: "genesis.json" });
  const strict = await start({ genesis: "genesis.json", "identity-form": "network" });
  Object.assign(t.context, {
    node,
    strict,
    bare: await start({}),
    trusting: await start({ "identity-mode": "trusted-header" }),
    clients: connectEach(node.port),
    strictClients: connectEach(strict.port),
  });
});

type HeadersOf = () => Record<string, string>;

/** Headers of a read, by the response: served, not found as for any anonymous caller, or rejected. */
const cases: Readonly<Record<Outcome, Readonly<Record<string, HeadersOf>>>> = {
  served: {
    "the owner": () => owner.headers(),
    "the owner, without prefixes": () => owner.headers({ identity: owner.publicKey.slice(2) }),
    "the owner, in upper case": () => owner.headers({ identity: `0x${owner.publicKey.slice(2).toUpperCase()}` }),
    "the owner, four minutes ago": () => owner.headers({ timestamp: Date.now() - 240_000 }),
    "the owner, fifty seconds ahead": () => owner.headers({ timestamp: Date.now() + 50_000 }),
    "the owner, on this network": () => owner.headers({ network }),
    "the owner, on this network, without prefixes": () =>
      owner.headers({ network, identity: owner.publicKey.slice(2) }),
    "an empty network, which is none": () => ({ ...owner.headers(), network: "" }),
  },
  anonymous: {
    "a network, and nothing signed": () => ({ network }),
    "somebody else": () => friend.headers(),
    nobody: () => ({}),
    "the prefix alone": () => ({ identity: "ed25519:", timestamp: "", signature: "" }),
    "a claim without a signature": () => ({ identity: `ed25519:${owner.publicKey}` }),
    "a key that signs itself, for all time": () => owner.timelessHeaders(),
  },
  rejected: {
    "the owner, on another network": () => owner.headers({ network: otherNetwork }),
    "what was signed for another network, called this one": () => ({
      ...owner.headers({ network: otherNetwork }),
      network,
    }),
    "what was signed for this network, called every one's": () => ({ ...owner.headers({ network }), network: "" }),
    "what was signed for every network, called this one's": () => ({ ...owner.headers(), network }),
    "a network that is none": () => owner.headers({ network: "mainnet" }),
    "a network in upper case": () => owner.headers({ network: network.toUpperCase() }),
    "six minutes ago, on this network": () => owner.headers({ network, timestamp: Date.now() - 360_000 }),
    "two minutes ahead, on this network": () => owner.headers({ network, timestamp: Date.now() + 120_000 }),
    "two minutes ahead": () => owner.headers({ timestamp: Date.now() + 120_000 }),
    "six minutes ago": () => owner.headers({ timestamp: Date.now() - 360_000 }),
    "six minutes ahead": () => owner.headers({ timestamp: Date.now() + 360_000 }),
    "a timestamp that is none": () => owner.headers({ timestamp: "now" }),
    "a timestamp in other digits": () => owner.headers({ timestamp: "1e13" }),
    "a key that another one signs, for all time": () => ({
      ...owner.timelessHeaders(),
      signature: friend.timelessHeaders().signature,
    }),
    "a key that signs itself, at a time": () => ({ ...owner.timelessHeaders(), timestamp: String(Date.now()) }),
    "a key that signs itself, for a network": () => ({ ...owner.timelessHeaders(), network }),
    "no timestamp": () => ({ ...owner.headers(), timestamp: "" }),
    "a signature of another timestamp": () => ({ ...owner.headers(), timestamp: String(Date.now() + 5) }),
    "a signature of another key": () => ({ ...friend.headers(), identity: `ed25519:${owner.publicKey}` }),
    "a signature without identity": () => ({ ...owner.headers(), identity: "" }),
    "an identity that is none": () => owner.headers({ identity: "ed25519:0x12" }),
    "another algorithm": () => owner.headers({ identity: `falcon:${owner.publicKey}` }),
    "half a signature": () => ({ ...owner.headers(), signature: owner.headers().signature.slice(0, 66) }),
    "a signature that is no hex": () => ({ ...owner.headers(), signature: "z".repeat(128) }),
    "a signature of zeros": () => ({ ...owner.headers(), signature: "0".repeat(128) }),
  },
};

type Outcome = keyof typeof outcomes;
/** Status and error code of each response. */
const outcomes = {
  served: [200, undefined],
  anonymous: [404, "NOT_FOUND"],
  rejected: [401, "INVALID_SIGNATURE"],
} as const;

/** Reads a private field in every protocol, and checks the responses. */
async function checkReads(
  t: ExecutionContext<Context>,
  { port }: TestNode,
  clients: Readonly<Record<string, RpcClient>>,
  headersOf: HeadersOf,
  outcome: Outcome,
): Promise<void> {
  const [status, errorCode] = outcomes[outcome];
  const answer = await ask(port, path, { headers: headersOf() });
  t.is(answer.status, status, answer.text);
  t.is((JSON.parse(answer.text) as { errorCode?: string }).errorCode, errorCode);
  const params = { storageAddress: address, field: "secret" };
  const { text } = await ask(port, "/", {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headersOf() },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "storage.getField", params }),
  });
  const { error } = JSON.parse(text) as { readonly error?: { readonly data: { readonly reason: string } } };
  t.is(error?.data.reason, errorCode, "JSON-RPC");
  for (const protocol of rpcProtocols) {
    const call = clients[protocol]!.call(StorageService.method.getField, params, headersOf());
    const reason = await call.then(
      () => undefined,
      (failure: unknown) => readFailure(failure).reason,
    );
    t.is(reason, errorCode, protocol);
  }
}

for (const [outcome, byTitle] of Object.entries(cases) as [Outcome, Readonly<Record<string, HeadersOf>>][]) {
  for (const [title, headersOf] of Object.entries(byTitle)) {
    test(`${outcome}: ${title}`, async (t) => {
      await checkReads(t, t.context.node, t.context.clients, headersOf, outcome);
    });

    test(`with --identity-form network: ${title}`, async (t) => {
      const { network: named = "", signature = "" } = headersOf();
      // Only identities signed for every network are rejected in addition.
      const isForAll = named === "" && signature !== "";
      await checkReads(t, t.context.strict, t.context.strictClients, headersOf, isForAll ? "rejected" : outcome);
    });
  }
}

test("rejects an invalid signature with 401 first, on routes that identify callers", async (t) => {
  const headers = { ...owner.headers(), timestamp: "1" };
  const routes = ["/storage-program/search?q=a", "/storage-program/search", `/storage-program/stor-${"9".repeat(40)}`];
  for (const other of [...routes, "/chain/blocks/99", "/events", "/search?q=a"]) {
    t.is((await ask(t.context.node.port, other, { headers })).status, 401, other);
  }
});

test("explains how to sign if a claim is rejected", async (t) => {
  const { text } = await ask(t.context.node.port, path, { headers: { identity: owner.publicKey } });
  t.regex((JSON.parse(text) as { error: string }).error, /sign/);
});

test("trusts the identity header behind a gateway", async (t) => {
  const { port, warnings } = t.context.trusting;
  t.is((await ask(port, path, { headers: { identity: owner.publicKey } })).status, 200);
  t.is((await ask(port, path, { headers: { identity: friend.publicKey } })).status, 404);
  t.is((await ask(port, path)).status, 404);
  // Existing clients without a key send this. They are anonymous, and not rejected.
  t.is((await ask(port, path, { headers: { identity: "ed25519:" } })).status, 404);
  t.is((await ask(port, path, { headers: { identity: "0x1" } })).status, 401);
  t.regex(warnings.join("\n"), /identity header is trusted without a signature/);
});

test("explains what is wrong with the network", async (t) => {
  const { node, strict, bare } = t.context;
  const sentence = async (port: number, headers: Record<string, string>): Promise<string> =>
    (JSON.parse((await ask(port, path, { headers })).text) as { error: string }).error;
  t.is(
    await sentence(node.port, owner.headers({ network: otherNetwork })),
    `The identity is signed for the network ${otherNetwork}, and this node belongs to ${network}.`,
  );
  t.regex(await sentence(strict.port, owner.headers()), /also send the header network, .*GET \/chain\/head/);
  t.regex(await sentence(bare.port, owner.headers({ network })), /this node has no genesis yet/);
  // The identity may be valid once the node has a genesis.
  t.is((await ask(bare.port, path, { headers: owner.headers({ network }) })).status, 503);
  t.is((await ask(bare.port, path, { headers: owner.headers() })).status, 200);
});

test("rejects a key of small order with any signature", async (t) => {
  for (const key of smallOrderKeys) {
    for (const identity of [key, `ed25519:${key}`]) {
      const timestamp = String(Date.now());
      const signature = `0x${forge(key, identityMessage(identity, timestamp, undefined)).toString("hex")}`;
      const answer = await ask(t.context.node.port, path, { headers: { identity, timestamp, signature } });
      t.is(answer.status, 401, identity);
      t.regex(answer.text, /not an Ed25519 public key/);
    }
    t.is((await ask(t.context.trusting.port, path, { headers: { identity: key } })).status, 401);
  }
});

test("verifies a signature once, and rejects it when it expires", (t) => {
  let now = 1_700_000_000_000;
  const identify = createIdentify({ identityMode: "signed", identityForm: "any", network: undefined }, () => now);
  const headers = owner.headers({ timestamp: now });
  const get = (name: string): string | undefined => headers[name];
  t.is(identify(get), owner.publicKey);
  const startMs = performance.now();
  for (let i = 0; i < 10_000; i++) {
    identify(get);
  }
  t.log(`10,000 reads with one signature: ${Math.round(performance.now() - startMs)} ms`);
  now += 5 * 60_000 + 1;
  t.throws(() => identify(get), { message: /more than 5 minutes before/ });
  now -= 6 * 60_000 + 2;
  t.throws(() => identify(get), { message: /more than 60 seconds ahead/ });
});
