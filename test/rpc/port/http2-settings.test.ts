/** HTTP/2 settings of the node, which common clients must support. */
import test from "ava";
import { frameTypes, settingIds } from "../../helpers/wire/http2-frames.js";
import { connectRawHttp2 } from "../../helpers/wire/raw-http2.js";
import { sharedTestNode } from "../../helpers/nodes/start-node.js";
import { until } from "../../helpers/nodes/until.js";

const node = sharedTestNode({});
const usualTableBytes = 4_096;

test("keeps the default header table size, which nginx requires", async (t) => {
  const client = await connectRawHttp2(node.port);
  t.teardown(() => client.close());
  const { frames } = client;
  await until(() => frames.some(({ type }) => type === frameTypes.settings));
  const { payload } = frames.find(({ type }) => type === frameTypes.settings)!;
  const settings = new Map<number, number>();
  for (let at = 0; at < payload.length; at += 6) {
    settings.set(payload.readUInt16BE(at), payload.readUInt32BE(at + 2));
  }
  t.true(settings.size > 0);
  t.is(settings.get(settingIds.headerTableSize) ?? usualTableBytes, usualTableBytes);
});
