/** Seconds of /health: readers that keep exact integers accept a decimal of at most 15 characters. */
import test from "ava";
import { ask } from "../helpers/wire/plain-client.js";
import { startTestNode } from "../helpers/nodes/start-node.js";

test("has no decimal with more than three places", async (t) => {
  const { port } = await startTestNode(t);
  const { text } = await ask(port, "/health");
  t.regex(text, /"uptime_s":\d+\.\d/);
  t.deepEqual(text.match(/"\w+":\d+\.\d{4,}/g), null);
});
