/**
 * Certificate of the public port. The files are read at boot, when they change, and when the operator requests it.
 * While files are being replaced, they may be missing, incomplete or inconsistent. The current certificate then stays
 * in use, and the files are read again.
 */
import type { X509Certificate } from "node:crypto";
import { stat } from "node:fs/promises";
import type { TlsCredentials } from "../../base/crypto/certificate.js";
import type { Logger } from "../../base/logging/log.js";
import { errorMessage } from "../../base/errors/error-message.js";
import { startPeriodicTask } from "../../base/async/periodic-task.js";
import { StartError } from "../../base/errors/start-error.js";
import { readTlsFiles, type TlsFiles, TlsFilesError, type TlsPaths, tlsPaths } from "../../config/tls-files.js";
import type { NodeCore } from "../lifecycle/core.js";

export interface NodeTls {
  /** Returns the current credentials; undefined for cleartext. */
  readonly credentials: () => TlsCredentials | undefined;
  /** Returns the expiry of the current certificate in Unix milliseconds; undefined for cleartext. */
  readonly notAfterMs: () => number | undefined;
  /** Returns a message about an invalid or soon expired certificate, or one that cannot be reloaded; undefined if none. */
  readonly problem: () => string | undefined;
  /** Registers a function that is called with each new certificate and its key. */
  onRenewed(apply: (credentials: TlsCredentials) => void): void;
}

/**
 * Interval in milliseconds at which the files are read. Their content is compared, which also detects a renamed file
 * and a changed symbolic link. The files are small.
 */
const readEveryMs = 2_000;
/** Time in milliseconds before the expiry from which on the operator is warned. */
const expiresSoonMs = 14 * 24 * 60 * 60 * 1_000;

const subsystem = "rpc";

/**
 * Reads the files, and follows their changes until the node stops.
 *
 * @throws StartError if they do not hold a certificate and its key.
 */
export async function openTls(
  core: Pick<NodeCore, "bus" | "config" | "log" | "onShutdown" | "warn">,
): Promise<NodeTls> {
  const { config, log, bus, warn, onShutdown } = core;
  const paths = tlsPaths(config);
  if (paths === undefined) {
    bus.on("reloadRequested", () => log.info({}, "There is no certificate to reload: no --tls-cert is given"));
    const none = () => undefined;
    return { credentials: none, notAfterMs: none, problem: none, onRenewed: none };
  }
  const first = await readTlsFiles(paths).catch((error: unknown) => {
    throw new StartError(
      `--tls-cert ${paths.cert} and --tls-key ${paths.key} are not a certificate and its key: ${errorMessage(error)}.`,
      { cause: error },
    );
  });
  const expiry = describeExpiry(first.certificate, Date.now());
  if (expiry !== undefined) {
    warn(subsystem, expiry);
  }
  const followed = followTlsFiles(paths, first, log, Date.now);
  if (!(await canBeReadAgain(paths))) {
    bus.on("reloadRequested", () =>
      log.warn({ subsystem }, "--tls-cert and --tls-key are not regular files, so they cannot be reloaded"),
    );
    return followed;
  }
  const timer = startPeriodicTask(
    () => followed.check(),
    readEveryMs,
    () => undefined,
  );
  bus.on("reloadRequested", () => void followed.check("requested"));
  onShutdown("the certificate monitor", () => {
    followed.stop();
    // Not awaited: a file system that hangs must not delay the shutdown.
    void timer.stop();
  });
  return followed;
}

/** Returns false if a path exists and is no regular file. A pipe, such as one from a shell, can be read only once. */
async function canBeReadAgain({ cert, key }: TlsPaths): Promise<boolean> {
  const kinds = await Promise.all([cert, key].map((path) => stat(path).catch(() => undefined)));
  return kinds.every((kind) => kind?.isFile() !== false);
}

/**
 * Follows the files: each call of `check` reads them.
 *
 * @param first first content of the files.
 */
export function followTlsFiles(
  paths: TlsPaths,
  first: TlsFiles,
  log: Pick<Logger, "info" | "warn">,
  nowMs: () => number,
) {
  const listeners: ((credentials: TlsCredentials) => void)[] = [];
  let current = first;
  let problem: string | undefined;
  let expiry = describeExpiry(first.certificate, nowMs());
  let isStopped = false;
  let lastCheck = Promise.resolve();

  async function checkNow(isRequested: boolean): Promise<void> {
    try {
      apply(await readTlsFiles(paths), isRequested);
    } catch (error) {
      reportError(error, isRequested);
    }
    warnOfExpiry();
  }

  function apply(found: TlsFiles, isRequested: boolean): void {
    if (isStopped) {
      return;
    }
    const { cert, key } = current.credentials;
    if (found.credentials.cert === cert && found.credentials.key === key) {
      if (isRequested || problem !== undefined) {
        log.info({ subsystem }, "The certificate files are unchanged");
      }
    } else {
      listeners.forEach((renew) => renew(found.credentials));
      current = found;
      log.info({ subsystem }, `Serving a new certificate: ${describeCertificate(found.certificate)}`);
    }
    problem = undefined;
  }

  function reportError(error: unknown, isRequested: boolean): void {
    const message = errorMessage(error);
    if (!isStopped && (isRequested || message !== problem)) {
      const file = error instanceof TlsFilesError ? error.file : undefined;
      log.warn({ subsystem, file }, describeReload(message));
    }
    problem = message;
  }

  function warnOfExpiry(): void {
    const now = describeExpiry(current.certificate, nowMs());
    if (!isStopped && now !== undefined && now !== expiry) {
      log.warn({ subsystem }, now);
    }
    expiry = now;
  }

  return {
    credentials: () => current.credentials,
    notAfterMs: () => Date.parse(current.certificate.validTo),
    problem: () =>
      [expiry, problem && describeReload(problem)].filter((reason) => reason !== undefined).join(" ") || undefined,
    onRenewed: (renew: (credentials: TlsCredentials) => void) => void listeners.push(renew),
    /**
     * Reads the files, after all reads in progress. Never rejects. Logs a known result again only if the operator
     * requested the read.
     */
    check: (why?: "requested") => (lastCheck = lastCheck.then(() => checkNow(why === "requested"))),
    /** Ignores all later results, also those of a read in progress. */
    stop(): void {
      isStopped = true;
    },
  };
}

function describeReload(problem: string): string {
  return `The certificate could not be reloaded; the node continues with the current one and retries: ${problem}`;
}

/**
 * Returns a message about an invalid or soon expired certificate; undefined if its validity period is fine.
 *
 * @param owner name of the owner, which completes "The certificate of".
 */
export function describeExpiry(
  { validFrom, validTo }: X509Certificate,
  nowMs: number,
  owner = "--tls-cert",
): string | undefined {
  const [from, to] = [new Date(validFrom), new Date(validTo)];
  if (nowMs > to.getTime()) {
    return `The certificate of ${owner} has expired: it was valid until ${to.toISOString()}.`;
  }
  if (nowMs < from.getTime()) {
    return `The certificate of ${owner} is not valid before ${from.toISOString()}.`;
  }
  return nowMs > to.getTime() - expiresSoonMs
    ? `The certificate of ${owner} expires soon: it is valid until ${to.toISOString()}.`
    : undefined;
}

/** Describes a certificate by its expiry and its subject. Uses the alternative names if there is no subject. */
function describeCertificate({ subject, subjectAltName, validTo }: X509Certificate): string {
  // The type does not say that the subject may be missing.
  const name = (subject as string | null | undefined)?.replaceAll("\n", ", ") ?? subjectAltName;
  return `${name ?? "without a name"}, valid until ${new Date(validTo).toISOString()}`;
}
