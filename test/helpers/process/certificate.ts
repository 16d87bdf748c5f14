import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { run } from "./programs.js";
import { startTestNode, type TestNode } from "../nodes/start-node.js";
import { type Teardown, temporaryDirectory } from "../nodes/teardown.js";

/** Creates a self-signed certificate for localhost and 127.0.0.1, with a NIST P-256 key. */
export async function makeCertificate(dir: string, days = 1): Promise<{ readonly cert: string; readonly key: string }> {
  const [cert, key] = [join(dir, "cert.pem"), join(dir, "key.pem")];
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", String(days)];
  const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
  await run("openssl", ["req", "-x509", ...kind, ...subject, "-keyout", key, "-out", cert]);
  return { cert, key };
}

/** Starts a node with TLS. */
export async function startTlsNode(
  t: Teardown,
  flags: Readonly<Record<string, string | boolean>> = {},
): Promise<{ readonly node: TestNode; readonly port: number; readonly ca: Buffer; readonly cert: string }> {
  const { cert, key } = await makeCertificate(await temporaryDirectory(t));
  const node = await startTestNode(t, { "tls-cert": cert, "tls-key": key, ...flags });
  return { node, port: node.port, ca: await readFile(cert), cert };
}
