import test from "ava";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { buildPresentation, notaryKey } from "../helpers/process/presentation.js";
import { runCli } from "../helpers/nodes/run-cli.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";

test("attest verify accepts an attestation as bytes, hex, base64 and JSON", async (t) => {
  const dir = await temporaryDirectory(t);
  const bytes = buildPresentation({ recv: "a\u001b[31m, hidden", revealRecv: [[0, 6]] });
  const hex = bytes.toString("hex");
  const forms: Readonly<Record<string, string | Buffer>> = {
    bytes,
    hex,
    base64: `${bytes.toString("base64")}\n`,
    json: JSON.stringify({ version: "0.1.0-alpha.12", data: hex, meta: {} }),
  };
  for (const [name, content] of Object.entries(forms)) {
    const file = join(dir, name);
    await writeFile(file, content);
    const { code, stdout, stderr } = await runCli(["attest", "verify", file, "--notary-keys", notaryKey, "--json"]);
    t.is(code, 0, `${name}: ${stderr}`);
    t.like(JSON.parse(stdout), { valid: true, notaryKey, serverName: null, recvLength: 14 });
  }
  const shown = await runCli(["attest", "verify", join(dir, "hex")], { env: { GATEHOUSE_NOTARY_KEYS: notaryKey } });
  t.is(shown.code, 0, shown.stderr);
  t.is(
    shown.stdout,
    `valid
SERVER     TIME                      ATTESTATION
not named  2026-01-01T00:00:00.000Z  ${"09".repeat(16)}
notary ${notaryKey}
sent, 47 bytes in total
  0-22: "GET /secret HTTP/1.1\\r\\n"
received, 14 bytes in total
  0-6: "a\\u001b[31m"
`,
  );
});

test("attest verify rejects untrusted and old attestations with code 1", async (t) => {
  const file = join(await temporaryDirectory(t), "hex");
  await writeFile(file, buildPresentation().toString("hex"));
  const untrusted = await runCli(["attest", "verify", file]);
  t.is(untrusted.code, 1);
  t.regex(untrusted.stderr, /Its notary 1:[0-9a-f]{66} is not trusted here \(--notary-keys\)/);
  const old = await runCli(["attest", "verify", file, "--notary-keys", notaryKey, "--max-age", "1", "--json"]);
  t.is(old.code, 1);
  t.like(JSON.parse(old.stdout), { valid: false, errorCode: "INVALID_ATTESTATION" });
});
