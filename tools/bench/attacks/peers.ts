/** Attacks by other nodes. */
import { createClient } from "@connectrpc/connect";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { ControlService } from "../../../gen/gatehouse/control/v1/control_pb.js";
import { createCertificate } from "../../../src/base/crypto/certificate.js";
import { connectStranger, type OddPeer, startOddPeer } from "../../../test/helpers/nodes/odd-peer.js";
import { newKey } from "../../../test/helpers/chain/keys.js";
import { controlOf } from "../servers/server-process.js";
import { type Attack, type Attacks, repeat, untilAborted } from "./attack.js";

/** Eight unknown nodes that repeat handshakes, each time with another address. */
function handshakes(forged: boolean): Attack {
  return {
    async harm({ omniPort, genesisHash }, signal) {
      const teardown = { teardown: (close: () => unknown) => signal.addEventListener("abort", close) };
      const shake = async (first: number): Promise<void> => {
        const stranger = connectStranger(teardown, omniPort, newKey());
        for (let port = first; !signal.aborted; port = (port % 60_000) + 8) {
          const said = { endpoint: `https://127.0.0.1:${port}`, genesisHash };
          await stranger.handshake(forged ? { ...said, signer: newKey() } : said).catch(() => undefined);
        }
      };
      await Promise.all(Array.from({ length: 8 }, (_, i) => shake(i + 1)));
      return undefined;
    },
  };
}

/** Peer that the operator added, and that misbehaves. */
function oddPeer(odd: () => Pick<OddPeer, "peers" | "blocks">): Attack {
  return {
    async harm({ dataDir, genesisHash }, signal) {
      const control = createClient(ControlService, controlOf(dataDir));
      const closers: (() => unknown)[] = [];
      const teardown = { teardown: (close: () => unknown) => closers.push(close) };
      while (!signal.aborted) {
        const peer = await startOddPeer(teardown, { key: newKey(), genesisHash, ...odd() });
        await control.addPeer({ endpoint: peer.endpoint });
        await Promise.race([untilAborted(signal), sleep(500)]);
        await control.removePeer({ endpoint: peer.endpoint });
      }
      closers.forEach((close) => close());
      return undefined;
    },
  };
}

export const peerAttacks: Attacks = {
  "forged handshakes": handshakes(true),
  "handshakes from nobody's addresses": handshakes(false),
  "TLS handshakes between nodes": {
    async harm({ omniPort }, signal) {
      const { cert, key } = createCertificate(newKey().privateKey);
      const options = {
        port: omniPort,
        host: "127.0.0.1",
        rejectUnauthorized: false,
        ALPNProtocols: ["h2"],
        cert,
        key,
      };
      await repeat(4, signal, async () => {
        const socket = connectTls(options);
        await new Promise((resolve) => socket.once("secureConnect", resolve).once("error", resolve));
        socket.destroy();
      });
      return undefined;
    },
  },
  "twenty identities that name a victim": {
    async harm({ omniPort, genesisHash }, signal) {
      let calls = 0;
      const victim = createServer((socket) => {
        calls++;
        socket.destroy();
      });
      await once(victim.listen(0, "127.0.0.1"), "listening");
      const endpoint = `https://127.0.0.1:${(victim.address() as AddressInfo).port}`;
      const teardown = { teardown: (close: () => unknown) => signal.addEventListener("abort", close) };
      await repeat(20, signal, async () => {
        const stranger = connectStranger(teardown, omniPort, newKey());
        for (let i = 0; i < 5 && !signal.aborted; i++) {
          await stranger.handshake({ endpoint, genesisHash }).catch(() => undefined);
          await sleep(20);
        }
      });
      victim.close();
      return { "calls to the victim": calls };
    },
  },
  "a peer that tells of 10,000 addresses": oddPeer(() => ({
    peers: Array.from({ length: 10_000 }, (_, i) => ({ endpoint: `https://127.0.0.1:${i + 1}`, identity: "" })),
  })),
  "a peer that streams without end": oddPeer(() => ({
    async blocks(_, send) {
      for (;;) {
        await send(undefined);
      }
    },
  })),
};
