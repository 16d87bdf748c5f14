/** The gRPC client between nodes, against real servers with their own keys. */
import test, { type ExecutionContext } from "ava";
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:net";
import { join } from "node:path";
import { createServer as createTlsServer } from "node:tls";
import { ChainService } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import { PeerService } from "../../../gen/gatehouse/peer/v1/peer_pb.js";
import { createCertificate } from "../../../src/base/crypto/certificate.js";
import { CallError, type Channel } from "../../../src/rpc/channel.js";
import { createDeferredService } from "../../../src/rpc/deferred-service.js";
import { RpcError } from "../../../src/rpc/errors.js";
import { createGrpcClient } from "../../../src/rpc/grpc/grpc-client.js";
import { createUnrestrictedGate } from "../../../src/edge/unrestricted-gate.js";
import { createGrpcOnlyServer } from "../../../src/rpc/server/rpc-server.js";
import { type Implementation, serve } from "../../../src/rpc/service.js";
import { testKey, type TestKey } from "../../helpers/chain/keys.js";
import { temporaryDirectory } from "../../helpers/nodes/teardown.js";
import { until } from "../../helpers/nodes/until.js";

const mine = createCertificate(testKey(1).privateKey);
const soon = (): number => Date.now() + 60_000;

/** Number of the first long block. Blocks from it on are sent as fast as the client reads them. */
const large = 1_000_000n;

interface Server {
  readonly port: number;
  calls: number;
  /** Number of blocks from {@link large} on whose sending started. */
  largeBlocks: number;
  stop(): Promise<void>;
}

/** Starts a node's server, over TLS with this key, or in cleartext. */
async function startServer(t: ExecutionContext, key: TestKey | undefined, wanted = 0): Promise<Server> {
  const unavailable = (): RpcError => new RpcError("STATE_NOT_READY", "The node has no genesis block yet.");
  const state = { calls: 0, largeBlocks: 0 };
  const peers: Partial<Implementation<typeof PeerService>> = {
    getChallenge(_, { caller }) {
      state.calls++;
      return { genesisHash: caller.identity ?? "nobody" };
    },
  };
  const chain: Partial<Implementation<typeof ChainService>> = {
    async *listBlocks({ fromNumber }) {
      for (let number = fromNumber; ; number++) {
        if (number >= large) {
          state.largeBlocks++;
          // Compressible data would need fewer bytes.
          yield { block: { header: randomBytes(128 * 1024), signature: Buffer.from(String(number)) } };
        } else {
          await new Promise((resolve) => setTimeout(resolve, 5));
          yield { block: { header: Buffer.from(String(number)) } };
        }
      }
    },
  };
  const services = [
    serve(PeerService, createDeferredService(PeerService, peers, unavailable).implementation),
    serve(ChainService, createDeferredService(ChainService, chain, unavailable).implementation),
  ];
  const listener = createGrpcOnlyServer(
    { services, gate: createUnrestrictedGate(), onInternalError: (error) => t.fail(String(error)) },
    key && createCertificate(key.privateKey),
  );
  const port = await listener.listen({ host: "127.0.0.1", port: wanted });
  const stop = (): Promise<void> => listener.drain(0);
  t.teardown(stop);
  return Object.assign(state, { port, stop });
}

async function open(t: ExecutionContext, port: number, tls = true): Promise<Channel> {
  const target = { ip: "127.0.0.1", port, authority: `127.0.0.1:${port}` };
  const channel = await createGrpcClient(tls ? mine : undefined)(target, soon());
  t.teardown(() => channel.close());
  return channel;
}

test("proves both identities over TLS, and passes on the error messages of the other node", async (t) => {
  const { port } = await startServer(t, testKey(2));
  const channel = await open(t, port);
  t.is(channel.identity, testKey(2).publicKey);
  const { genesisHash } = await channel.call(PeerService.method.getChallenge, {}, soon());
  t.is(genesisHash, testKey(1).publicKey);
  const rejected = await t.throwsAsync(channel.call(PeerService.method.exchangeStatus, {}, soon()));
  t.like(rejected, { name: "CallError", message: "The node has no genesis block yet.", isResponse: true });
});

test("has no identities without TLS", async (t) => {
  const { port } = await startServer(t, undefined);
  const channel = await open(t, port, false);
  t.is(channel.identity, undefined);
  t.is((await channel.call(PeerService.method.getChallenge, {}, soon())).genesisHash, "nobody");
});

test("reconnects only to the node with the same key", async (t) => {
  const first = await startServer(t, testKey(2));
  const channel = await open(t, first.port);
  const call = () => channel.call(PeerService.method.getChallenge, {}, soon());
  await call();
  await first.stop();
  const another = await startServer(t, testKey(3), first.port);
  await t.throwsAsync(call(), { instanceOf: CallError });
  t.is(another.calls, 0);
  await another.stop();
  const again = await startServer(t, testKey(2), first.port);
  await until(() => call().then(Boolean, () => false));
  t.true(again.calls > 0);
});

test("rejects new calls after close, and completes the calls in flight", async (t) => {
  const { port } = await startServer(t, testKey(2));
  const channel = await open(t, port);
  const ended = new AbortController();
  const stream = channel.stream(ChainService.method.listBlocks, { fromNumber: 7n }, ended.signal);
  const numbers: string[] = [];
  for await (const { block } of stream) {
    numbers.push(Buffer.from(block!.header).toString());
    if (numbers.length === 1) {
      channel.close();
    }
    if (numbers.length === 20) {
      break;
    }
  }
  t.deepEqual(numbers.slice(0, 3), ["7", "8", "9"]);
  await t.throwsAsync(channel.call(PeerService.method.getChallenge, {}, soon()));
});

test("ends a stream when its signal is aborted", async (t) => {
  const { port } = await startServer(t, testKey(2));
  const channel = await open(t, port);
  const ended = new AbortController();
  let count = 0;
  await t.throwsAsync(
    async () => {
      for await (const _ of channel.stream(ChainService.method.listBlocks, { fromNumber: 1n }, ended.signal)) {
        count++;
        ended.abort();
      }
    },
    { instanceOf: CallError },
  );
  t.true(count >= 1);
});

test("fails to open a channel to a peer that proves no identity or does not respond", async (t) => {
  const dir = await temporaryDirectory(t);
  const files = ["-keyout", join(dir, "key.pem"), "-out", join(dir, "cert.pem")];
  execFileSync(
    "openssl",
    ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=a", ...files],
    { stdio: "ignore" },
  );
  const cert = await readFile(join(dir, "cert.pem"));
  const key = await readFile(join(dir, "key.pem"));
  const other = createTlsServer({ cert, key }, (socket) => socket.on("error", () => undefined));
  const silent = createServer(() => undefined);
  const withoutTls = createHttpServer();
  for (const [server, message, deadline] of [
    [other, /does not prove an identity; is this the public port\? Use the internal one\.$/, soon],
    [withoutTls, /failed: It answers without TLS; is this the public port\? Use the internal one\.$/, soon],
    [silent, /timed out/, () => Date.now() + 300],
  ] as const) {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    t.teardown(() => server.close());
    const { port } = server.address() as { readonly port: number };
    const target = { ip: "127.0.0.1", port, authority: `localhost:${port}` };
    await t.throwsAsync(createGrpcClient(mine)(target, deadline()), { instanceOf: CallError, message });
  }
  const nobody = { ip: "127.0.0.1", port: 9, authority: "localhost:9" };
  await t.throwsAsync(createGrpcClient(mine)(nobody, soon()), { instanceOf: CallError, message: /ECONNREFUSED/ });
});

test("throws the node's own error for a request that cannot be encoded", async (t) => {
  const { port } = await startServer(t, testKey(2));
  const channel = await open(t, port);
  const broken = { transactions: [null] } as object;
  await t.throwsAsync(channel.call(PeerService.method.relayTransactions, broken, soon()), { instanceOf: TypeError });
});

test("reads at most one message of a stream ahead, of any size, and loses none", async (t) => {
  const server = await startServer(t, undefined);
  const channel = await open(t, server.port, false);
  const stopped = new AbortController();
  const blocks = channel.stream(ChainService.method.listBlocks, { fromNumber: large }, stopped.signal);
  const next = async (): Promise<string> => Buffer.from((await blocks.next()).value!.block!.signature).toString();
  t.is(await next(), "1000000");
  // On the same connection, so that each arrives after the bytes sent before.
  for (let i = 0; i < 300; i++) {
    await channel.call(PeerService.method.getChallenge, {}, soon());
  }
  // One message is received, one is in transit, and one is at the sender.
  t.true(server.largeBlocks <= 4, `${server.largeBlocks} blocks were begun`);
  for (let number = 1_000_001; number < 1_000_030; number++) {
    t.is(await next(), String(number));
  }
  stopped.abort();
  await blocks.return();
});
