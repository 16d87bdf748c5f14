/** What the tests of deploy/ have in common. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Config, loadConfig } from "../../src/config/config.js";
import { options } from "../../src/config/options.js";

/** Runs a program to its end; rejects with its output when it fails. */
export const run = promisify(execFile);

/** The configuration of a node that is started with these variables, all of which must be options. */
export function configOf(env: Readonly<Record<string, string>>): Config {
  const unknown = Object.keys(env).filter((name) => !options.some((option) => option.env === name));
  if (unknown.length > 0) {
    throw new Error(`no options: ${unknown.join(", ")}`);
  }
  return loadConfig({ flags: {}, env, cwd: "/" });
}

/** A configuration of which nothing is set. */
export const defaults = configOf({});

/** Makes a certificate that signs itself, for localhost and 127.0.0.1. Blocks nobody: a node that lags refuses work. */
export async function makeCertificate(dir: string): Promise<{ readonly cert: string; readonly key: string }> {
  const [cert, key] = [join(dir, "cert.pem"), join(dir, "key.pem")];
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"];
  const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
  await run("openssl", ["req", "-x509", ...kind, ...subject, "-keyout", key, "-out", cert]);
  return { cert, key };
}
