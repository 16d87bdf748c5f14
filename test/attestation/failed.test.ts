/** A node whose verifier cannot start: its library is hidden from it, which Linux alone lets a test do. */
import test from "ava";
import { spawnSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { ask, askJson } from "../helpers/plain-client.js";
import { startCli } from "../helpers/run-cli.js";
import { silentPeer, temporaryDirectory } from "../helpers/start-node.js";

const inNamespace = ["--user", "--map-root-user", "--mount"];
const library = resolve("node_modules/tlsn-wasm/tlsn_wasm_bg.wasm");
const hide = `mount --bind /dev/null ${library}`;
const probe = spawnSync("unshare", [...inNamespace, "sh", "-c", hide], { encoding: "utf8" });

if (probe.status !== 0) {
  const why = (probe.error?.message ?? probe.stderr).trim();
  test(`a failed verifier is not tried: nothing can be hidden here (${why})`, (t) => t.pass());
} else {
  test("a verifier that cannot start degrades the node, says why, and everything else goes on", async (t) => {
    const dir = await temporaryDirectory(t);
    const peers = join(dir, "peers.json");
    await writeFile(peers, JSON.stringify([{ url: silentPeer }]));
    const node = await startCli(
      t,
      [
        ...["start", "--data-dir", dir, "--peers", peers, "--host", "127.0.0.1", "--rpc-port", "0", "--omni-port", "0"],
        ...["--genesis", resolve("examples/genesis.json"), "--tlsnotary-enabled", "--log-level", "fatal"],
      ],
      {},
      ["unshare", ...inNamespace, "sh", "-c", `${hide} && exec "$@"`, "sh"],
    );
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
}
