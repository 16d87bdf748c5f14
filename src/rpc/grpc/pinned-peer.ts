/**
 * Client side of mutual TLS between nodes. Node certificates are self-signed, but grpc-js verifies certificates by
 * their issuer. The certificate at an address is therefore fetched first. The channel then trusts only this
 * certificate, also after reconnects.
 */
import type * as GrpcJs from "@grpc/grpc-js";
import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { connect, createSecureContext, type TLSSocket } from "node:tls";
import { identityOfCertificate, type TlsCredentials } from "../../base/crypto/certificate.js";
import { isPlainResponse } from "../../base/errors/plain-response.js";
import { lazyRequire } from "../../base/async/lazy-require.js";
import { CallError, type ChannelTarget } from "../channel.js";

/** Library for calls to other nodes. Nodes without outgoing calls never load it. */
export const grpcJs = lazyRequire<typeof GrpcJs>("@grpc/grpc-js");

export interface PinnedPeer {
  /** Public key of the peer: 0x and 64 lowercase hex digits. */
  readonly identity: string;
  readonly certificate: string;
}

const minVersion = "TLSv1.3";
/** Advice for an address at which no node identifies itself. */
const useInternalPort = "is this the public port? Use the internal one.";

/**
 * Finds the identity and certificate of the node at an address.
 *
 * @param untilMs deadline in milliseconds since the epoch.
 * @throws CallError
 */
export async function findPeer(target: ChannelTarget, own: TlsCredentials, untilMs: number): Promise<PinnedPeer> {
  const { ip: host, port } = target;
  const options = { ...own, host, port, servername: serverNameOf(target), minVersion, ALPNProtocols: ["h2"] } as const;
  let socket: TLSSocket | undefined;
  let timer: NodeJS.Timeout | undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      timer = setTimeout(() => reject(new Error("The TLS connection timed out.")), untilMs - Date.now());
      socket = connect({ ...options, rejectUnauthorized: false }, resolve).on("error", reject);
    });
  } catch (error) {
    socket?.destroy();
    const reason = isPlainResponse(error) ? `It answers without TLS; ${useInternalPort}` : (error as Error).message;
    throw new CallError(`The connection failed: ${reason}`, false);
  } finally {
    clearTimeout(timer);
  }
  const { raw } = socket!.getPeerCertificate();
  socket!.destroySoon();
  const identity = identityOfCertificate(raw);
  if (identity === undefined) {
    throw new CallError(`The certificate of the peer does not prove an identity; ${useInternalPort}`, false);
  }
  return { identity, certificate: new X509Certificate(raw).toString() };
}

/** Returns credentials of a channel that only accepts this peer. */
export function credentialsFor({ identity, certificate }: PinnedPeer, own: TlsCredentials): GrpcJs.ChannelCredentials {
  return grpcJs().ChannelCredentials.createFromSecureContext(
    createSecureContext({ ...own, ca: certificate, minVersion }),
    {
      // The key replaces the check of names, which have no meaning in these certificates.
      checkServerIdentity: (_, { raw }) =>
        identityOfCertificate(raw) === identity ? undefined : new Error("The peer has another identity than expected."),
    },
  );
}

/** Returns the server name for TLS (SNI). An IP address is not permitted (RFC 6066), and nodes ignore the name. */
export function serverNameOf({ authority }: ChannelTarget): string {
  const { hostname } = new URL(`https://${authority}`);
  return isIP(hostname.replace(/^\[|\]$/g, "")) === 0 ? hostname : "gatehouse";
}
