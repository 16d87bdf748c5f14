/** A node whose verifier cannot start: its library is hidden from it, which Linux alone lets a test do. */
import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { afterMounting, whyNotMounted } from "../helpers/process/mounts.js";
import { ask, askJson } from "../helpers/wire/plain-client.js";
import { startNodeProcess } from "../helpers/nodes/start-cli.js";
import { sampleGenesis, silentPeer } from "../helpers/nodes/start-node.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";
import { testUnless } from "../helpers/nodes/when.js";

const hide = `mount --bind /dev/null ${resolve("node_modules/tlsn-wasm/tlsn_wasm_bg.wasm")}`;
const testHidden = testUnless(whyNotMounted(hide));

testHidden("a verifier that cannot start degrades the node, says why, and everything else goes on", async (t) => {
  const dir = await temporaryDirectory(t);
  const peers = join(dir, "peers.json");
  await writeFile(peers, JSON.stringify([{ url: silentPeer }]));
  const flags = ["--peers", peers, "--genesis", sampleGenesis, "--tlsnotary-enabled"];
  const node = await startNodeProcess(t, dir, flags, afterMounting(hide));
  interface Health {
    status: string;
    subsystems: { tlsnotary: { status: string; lastError: { message: string } } };
  }
  const health = await askJson<Health>(node.port, "/health");
  t.is(health.status, "degraded");
  t.is(health.subsystems.tlsnotary.status, "failed");
  t.regex(health.subsystems.tlsnotary.lastError.message, /its library cannot be loaded/);
  const own = await ask(node.port, "/tlsnotary/health");
  t.is(own.status, 503);
  t.like(JSON.parse(own.text), { status: "unhealthy", error: "The verifier failed: its library cannot be loaded." });
  const refused = await ask(node.port, "/tlsnotary/verify", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: '{"attestation":"AAAA"}',
  });
  t.is(refused.status, 503);
  t.like(JSON.parse(refused.text), { errorCode: "VERIFIER_NOT_RUNNING" });
});
