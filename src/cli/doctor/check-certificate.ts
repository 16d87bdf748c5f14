/** Checks of the certificates that clients see: the one in the node's files, and the one at `--public-url`. */
import type { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, isIP } from "node:net";
import { connect, createServer } from "node:tls";
import { certificateProblem } from "../../base/errors/certificate-error.js";
import type { Config } from "../../config/config.js";
import { readTlsFiles, tlsPaths } from "../../config/tls-files.js";
import { describeExpiry } from "../../node/serving/tls.js";
import { tlsTrust, trustFlag } from "../calls/authorities.js";
import { describeConnectionError } from "../calls/request-node.js";
import { type DoctorCheck, resultsOf } from "./check.js";

const connectWithinMs = 5_000;

/** Certificate that a server presents. */
interface Presented {
  readonly certificate: X509Certificate;
  /** Code of the error for which a client rejects its chain or dates; undefined if it is trusted. Names are not checked. */
  readonly rejection: string | undefined;
}

function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, "");
}

/** Returns the certificate that a TLS server presents, whether it is trusted or not. */
export async function certificateAt(url: URL, protocol: string): Promise<Presented> {
  const host = hostOf(url);
  const socket = connect({
    ...{ host, port: Number(url.port || 443), ALPNProtocols: [protocol] },
    ...{ rejectUnauthorized: false, checkServerIdentity: () => undefined, ...(await tlsTrust()) },
    // SNI selects the certificate of this name. An IP address is not a valid SNI name.
    ...(isIP(host) === 0 && { servername: host }),
  });
  socket.setTimeout(connectWithinMs, () => socket.destroy(new Error(`no response within ${connectWithinMs / 1000} s`)));
  try {
    await once(socket, "secureConnect");
    // The declared type is wrong: Node.js sets a code here.
    const rejection = (socket.authorizationError as unknown as string | null) ?? undefined;
    return { certificate: socket.getPeerX509Certificate()!, rejection };
  } finally {
    socket.destroy();
  }
}

/** Checks the certificate in the files of `--tls-cert`. A proxy in front of the node may present another one. */
export async function checkCertificateFiles(config: Config): Promise<DoctorCheck> {
  const name = "certificate";
  const paths = tlsPaths(config);
  if (paths === undefined) {
    return resultsOf(name).skip("No --tls-cert is given: the public port does not use TLS.");
  }
  const { credentials } = await readTlsFiles(paths);
  // A connection, so that the chain is judged as by a client.
  const server = createServer(credentials).listen(0, "127.0.0.1");
  try {
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const presented = await certificateAt(new URL(`https://127.0.0.1:${port}`), "http/1.1");
    return judge(presented, {
      ...{ name, owner: "--tls-cert", host: httpsHost(config), untrusted: "warn" },
      renew: "Renew it and replace the files; the node reloads them by itself.",
    });
  } finally {
    server.close();
  }
}

/**
 * Checks the certificate of the server that terminates TLS. Behind a proxy, the node itself never sees this
 * certificate.
 */
export async function checkPublicCertificate(config: Config): Promise<DoctorCheck> {
  const name = "public certificate";
  const { publicUrl } = config;
  const host = httpsHost(config);
  if (publicUrl === undefined || host === undefined) {
    return resultsOf(name).skip("No --public-url with https is given.");
  }
  try {
    return judge(await certificateAt(new URL(publicUrl), "http/1.1"), {
      ...{ name, owner: publicUrl, host, untrusted: "fail" },
      renew: "Renew it where TLS terminates for that address: in the proxy, or in the files of --tls-cert.",
    });
  } catch (error) {
    return resultsOf(name).fail(
      `${publicUrl} presents no certificate: ${describeConnectionError(error)}.`,
      "Make it reachable, and serve TLS there.",
    );
  }
}

/** Returns the host of the public address; undefined unless it uses TLS. */
function httpsHost({ publicUrl }: Config): string | undefined {
  return publicUrl?.startsWith("https:") === true ? hostOf(new URL(publicUrl)) : undefined;
}

interface Judgement {
  /** Name of the check. */
  readonly name: string;
  /** Owner of the certificate, as the end of "The certificate of". */
  readonly owner: string;
  /** Name or address that clients use; undefined if it is unknown. */
  readonly host: string | undefined;
  /** Result for a certificate that clients reject unless they are told to trust it, or unless a proxy replaces it. */
  readonly untrusted: "fail" | "warn";
  /** Advice for wrong dates. */
  readonly renew: string;
}

/** Judges a certificate as clients do: dates, names and issuer. */
function judge({ certificate, rejection }: Presented, { name, owner, host, untrusted, renew }: Judgement): DoctorCheck {
  const { [untrusted]: doubt, ok, warn, fail } = resultsOf(name);
  const [nowMs, fromMs, toMs] = [Date.now(), Date.parse(certificate.validFrom), Date.parse(certificate.validTo)];
  const dates = describeExpiry(certificate, nowMs, owner);
  if (dates !== undefined && (nowMs > toMs || nowMs < fromMs)) {
    return fail(dates, renew);
  }
  const names = certificate.subjectAltName;
  const kind = host === undefined || isIP(host) === 0 ? "DNS" : "IP";
  const again = `Issue it again with subjectAltName=${kind}:${host ?? "NAME"}.`;
  if (names === undefined) {
    return fail(
      `The certificate of ${owner} has no subjectAltName: browsers and Go reject it, whatever its CN.`,
      again,
    );
  }
  if (host !== undefined && !isFor(certificate, host)) {
    return doubt(`The certificate of ${owner} is for ${names}, and not for ${host}.`, again);
  }
  if (rejection !== undefined) {
    const problem = certificateProblem(Object.assign(new Error(rejection), { code: rejection }), trustFlag);
    const { found, remedy } = problem ?? { found: rejection, remedy: "issue it again" };
    return doubt(
      `The certificate of ${owner} is not trusted: ${found}.`,
      `${remedy.slice(0, 1).toUpperCase()}${remedy.slice(1)}. Clients must trust it as well.`,
    );
  }
  return dates === undefined
    ? ok(`It is valid until ${new Date(toMs).toISOString()}, for ${names}, and trusted.`)
    : warn(dates, renew);
}

function isFor(certificate: X509Certificate, host: string): boolean {
  const found = isIP(host) === 0 ? certificate.checkHost(host, { subject: "never" }) : certificate.checkIP(host);
  return found !== undefined;
}
