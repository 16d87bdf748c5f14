import { join } from "node:path";
import { run } from "./programs.js";

/** Makes a certificate that signs itself, for localhost and 127.0.0.1, with a key of NIST P-256. */
export async function makeCertificate(dir: string): Promise<{ readonly cert: string; readonly key: string }> {
  const [cert, key] = [join(dir, "cert.pem"), join(dir, "key.pem")];
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"];
  const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
  await run("openssl", ["req", "-x509", ...kind, ...subject, "-keyout", key, "-out", cert]);
  return { cert, key };
}
