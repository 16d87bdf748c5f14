/** Rapid resets: no stream is handled after the penalty that closes the connection. */
import test, { type ExecutionContext } from "ava";
import { readFile } from "node:fs/promises";
import type { TlsCredentials } from "../../../src/base/crypto/certificate.js";
import { createUnrestrictedGate } from "../../../src/edge/unrestricted-gate.js";
import type { Gate } from "../../../src/rpc/gate.js";
import { createPort } from "../../../src/rpc/port/port.js";
import { createRequestIds, type Exchange } from "../../../src/rpc/exchange/exchange.js";
import { makeCertificate } from "../../helpers/nodes/start-node.js";
import { encodeBlock, type Field } from "../../helpers/wire/hpack.js";
import { flags, frameBytes, frameTypes, resetStreams } from "../../helpers/wire/http2-frames.js";
import { connectRawHttp2, type RawHttp2 } from "../../helpers/wire/raw-http2.js";
import { type Teardown, temporaryDirectory } from "../../helpers/nodes/teardown.js";
import { until } from "../../helpers/nodes/until.js";

const [harm, honest] = ["/harm", "/honest"];
/** Penalties until a connection is closed. */
const maxPenalties = 20;
/** Number of streams that arrive in one read. */
const resetCount = 1_000;

const fieldsOf = (path: string): Field[] => [
  [":method", "GET"],
  [":scheme", "http"],
  [":path", path],
  [":authority", "localhost"],
];

/** Creates a gate that closes a connection at its last penalty. */
function createStrictGate(): Gate {
  const open = createUnrestrictedGate();
  return {
    ...open,
    connect(remoteAddress, cut) {
      let strikes = 0;
      const connection = open.connect(remoteAddress, cut)!;
      connection.penalize = () => {
        if (++strikes === maxPenalties) {
          cut();
        }
      };
      return connection;
    },
  };
}

/** Starts a port, counts its handled abusive streams, and opens connections to it. */
async function listen(t: Teardown, isTls: boolean) {
  let abusive = 0;
  const handle = (exchange: Exchange): void => {
    if (exchange.path === honest) {
      exchange.send({ status: 200, headers: [], body: "ok" });
    } else {
      abusive++;
    }
  };
  const tls = isTls ? await makeTls(t) : undefined;
  const port = createPort({ handle, gate: createStrictGate(), nextRequestId: createRequestIds(), tls });
  t.teardown(() => port.drain(0));
  const number = await port.listen({ host: "127.0.0.1", port: 0 });
  return {
    abusive: () => abusive,
    connect: async (beginning?: Buffer): Promise<RawHttp2> => {
      const ca = tls && { ca: Buffer.from(tls.cert) };
      const client = await connectRawHttp2(number, { replenish: false, ...(beginning && { beginning }), ...ca });
      t.teardown(() => client.close());
      return client;
    },
  };
}

async function makeTls(t: Teardown): Promise<TlsCredentials> {
  const { cert, key } = await makeCertificate(await temporaryDirectory(t));
  return { cert: await readFile(cert, "utf8"), key: await readFile(key, "utf8") };
}

const resets = (count: number): Buffer => resetStreams(encodeBlock(fieldsOf(harm)), 1, count);

for (const isTls of [false, true]) {
  const name = isTls ? "TLS" : "cleartext";

  test(`over ${name}: counts resets on an open connection`, async (t) => {
    const { abusive, connect } = await listen(t, isTls);
    const [bad, neighbor] = await Promise.all([connect(), connect()]);
    await until(() => bad.frames.some(({ type }) => type === frameTypes.settings));
    bad.write(resets(resetCount));
    await bad.closed;
    t.true(abusive() <= maxPenalties + 1, `${abusive()} were handled`);
    await isServed(t, neighbor);
  });

  test(`over ${name}: counts resets sent with the preface`, async (t) => {
    const { abusive, connect } = await listen(t, isTls);
    const [bad, neighbor] = await Promise.all([connect(resets(resetCount)), connect()]);
    await bad.closed;
    t.is(abusive(), 0);
    await isServed(t, neighbor);
  });
}

test("serves a stream next to a few streams that are reset with the preface", async (t) => {
  const { connect } = await listen(t, false);
  const [count, next] = [3, 7];
  const fields = encodeBlock(fieldsOf(honest));
  const request = frameBytes(frameTypes.headers, flags.endHeaders | flags.endStream, next, fields);
  const client = await connect(Buffer.concat([resets(count), request]));
  t.is(String((await client.answer(next)).body), "ok");
});

async function isServed(t: ExecutionContext, client: RawHttp2): Promise<void> {
  const { headers, body } = await client.request(fieldsOf(honest));
  t.is(headers[":status"], "200");
  t.is(String(body), "ok");
}
