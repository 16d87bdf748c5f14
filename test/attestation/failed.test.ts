/** A node whose verifier cannot start: a mount hides its library, which works only on Linux. */
import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { afterMounting, whyNotMounted } from "../helpers/process/programs.js";
import { ask, askJson } from "../helpers/wire/plain-client.js";
import { startNodeProcess } from "../helpers/nodes/run-cli.js";
import { sampleGenesis, silentPeer } from "../helpers/nodes/start-node.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";
import { testUnless } from "../helpers/nodes/when.js";

const hide = `mount --bind /dev/null ${resolve("node_modules/tlsn-wasm/tlsn_wasm_bg.wasm")}`;
const testHidden = testUnless(whyNotMounted(hide));

testHidden("a verifier that cannot start degrades the node, with the reason", async (t) => {
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
  const verifierHealth = await ask(node.port, "/tlsnotary/health");
  t.is(verifierHealth.status, 503);
  t.like(JSON.parse(verifierHealth.text), {
    status: "unhealthy",
    error: "The verifier failed: its library cannot be loaded.",
  });
  const rejected = await ask(node.port, "/tlsnotary/verify", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: '{"attestation":"AAAA"}',
  });
  t.is(rejected.status, 503);
  t.like(JSON.parse(rejected.text), { errorCode: "VERIFIER_NOT_RUNNING" });
});
