/** Certificates from authorities of a test, made by openssl. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { run } from "./programs.js";

/** Paths of a certificate and its key. */
export interface Issued {
  readonly cert: string;
  readonly key: string;
}

interface Contents {
  /** Subject alternative names in the notation of openssl; undefined for none. */
  readonly names?: string | undefined;
  readonly issuer?: Issued;
  readonly isAuthority?: boolean;
  /** First and last year of the validity. */
  readonly years?: readonly [number, number];
}

/** Names of a node on this machine. */
export const localNames = "DNS:localhost,IP:127.0.0.1";

/** Creates a certificate, self-signed unless an issuer is given, valid by default from 2020 to 2090. */
export async function issueCertificate(
  dir: string,
  name: string,
  { names, issuer, isAuthority = false, years: [from, to] = [2020, 2090] }: Contents = {},
): Promise<Issued> {
  const file = (kind: string): string => join(dir, `${name}.${kind}`);
  const [cert, key, request, config, index] = ["pem", "key", "csr", "cnf", "index"].map(file) as [
    string,
    string,
    string,
    string,
    string,
  ];
  await writeFile(index, "");
  const section = { database: index, new_certs_dir: dir, default_md: "sha256", policy: "policy", rand_serial: "yes" };
  await writeFile(
    config,
    [
      "[ca]",
      "default_ca = authority",
      "[authority]",
      ...Object.entries(section).map(([option, value]) => `${option} = ${value}`),
      "[policy]",
      "commonName = supplied",
      "[extensions]",
      `basicConstraints = critical,CA:${isAuthority ? "TRUE" : "FALSE"}`,
      ...(names === undefined ? [] : [`subjectAltName = ${names}`]),
    ].join("\n"),
  );
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  await run("openssl", ["req", "-new", ...curve, "-subj", `/CN=${name}`, "-keyout", key, "-out", request]);
  const signer = issuer === undefined ? ["-selfsign", "-keyfile", key] : ["-cert", issuer.cert, "-keyfile", issuer.key];
  const dates = ["-startdate", `${from}0101000000Z`, "-enddate", `${to}0101000000Z`];
  const output = ["-in", request, "-out", cert, "-notext", "-batch", "-extensions", "extensions"];
  await run("openssl", ["ca", "-config", config, ...signer, ...dates, ...output]);
  return { cert, key };
}
