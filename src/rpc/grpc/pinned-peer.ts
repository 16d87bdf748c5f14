/**
 * Mutual TLS between nodes, from the caller's side. The certificates of nodes are signed by nobody, and grpc-js checks
 * certificates by who signed them. So the certificate at an address is fetched first, and a channel then trusts that one
 * alone: nothing is sent to anybody else, however often the channel connects again.
 */
import type { ChannelCredentials } from "@grpc/grpc-js";
import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { connect, createSecureContext, type TLSSocket } from "node:tls";
import { identityOfCertificate, type TlsCredentials } from "../../base/crypto/certificate.js";
import { CallError, type ChannelTarget } from "../channel.js";
import { grpcJs } from "./grpc-js.js";

/** Who was found at an address. */
export interface PinnedPeer {
  /** 0x and 64 lower-case hex digits. */
  readonly identity: string;
  /** Its certificate, in PEM. */
  readonly certificate: string;
}

const minVersion = "TLSv1.3";

/**
 * Finds out which key is held at an address.
 *
 * @param untilMs milliseconds since the epoch after which it is given up.
 * @throws CallError
 */
export async function findPeer(target: ChannelTarget, own: TlsCredentials, untilMs: number): Promise<PinnedPeer> {
  const { ip: host, port } = target;
  const options = { ...own, host, port, servername: serverNameOf(target), minVersion, ALPNProtocols: ["h2"] } as const;
  let socket: TLSSocket | undefined;
  let timer: NodeJS.Timeout | undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      timer = setTimeout(() => reject(new Error("It took too long.")), untilMs - Date.now());
      socket = connect({ ...options, rejectUnauthorized: false }, resolve).on("error", reject);
    });
  } catch (error) {
    socket?.destroy();
    throw new CallError(`No connection was made: ${(error as Error).message}`, false);
  } finally {
    clearTimeout(timer);
  }
  const { raw } = socket!.getPeerCertificate();
  socket!.destroySoon();
  const identity = identityOfCertificate(raw);
  if (identity === undefined) {
    throw new CallError("The other end does not prove an identity.", false);
  }
  return { identity, certificate: new X509Certificate(raw).toString() };
}

/** Credentials of a channel at whose other end is this peer, and nobody else. */
export function credentialsFor({ identity, certificate }: PinnedPeer, own: TlsCredentials): ChannelCredentials {
  return grpcJs().ChannelCredentials.createFromSecureContext(
    createSecureContext({ ...own, ca: certificate, minVersion }),
    {
      // Instead of names, which mean nothing in these certificates.
      checkServerIdentity: (_, { raw }) =>
        identityOfCertificate(raw) === identity ? undefined : new Error("It is another node."),
    },
  );
}

/** What a TLS connection asks for by name: it must not be an address (RFC 6066), and nodes do not look at it. */
export function serverNameOf({ authority }: ChannelTarget): string {
  const { hostname } = new URL(`https://${authority}`);
  return isIP(hostname.replace(/^\[|\]$/g, "")) === 0 ? hostname : "gatehouse";
}
