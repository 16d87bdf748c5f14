/** Process that simulates many peers. Each has its own port, key and certificate, and responds correctly. */
import { generateKeyPairSync, sign } from "node:crypto";
import { startOddPeer } from "../../test/helpers/nodes/odd-peer.js";

process.once("message", (message) => void start(message as { readonly count: number; readonly genesisHash: string }));

async function start({ count, genesisHash }: { readonly count: number; readonly genesisHash: string }): Promise<void> {
  const endpoints: string[] = [];
  for (let i = 0; i < count; i++) {
    const { publicKey, privateKey } = generateKeyPairSync("ed25519");
    const raw = publicKey.export({ format: "der", type: "spki" }).subarray(-32);
    const key = {
      publicKey: `0x${raw.toString("hex")}`,
      privateKey,
      sign: (bytes: Uint8Array) => sign(null, bytes, privateKey),
    };
    const peer = await startOddPeer(
      { teardown: () => undefined },
      { key, genesisHash, status: () => ({ accepting: true }) },
    );
    endpoints.push(peer.endpoint);
  }
  process.send?.({ endpoints });
}
