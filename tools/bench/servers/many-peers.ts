/** Process that simulates many peers. Each has its own port, key and certificate, and responds correctly. */
import { newKey } from "../../../test/helpers/chain/keys.js";
import { startOddPeer } from "../../../test/helpers/nodes/odd-peer.js";

process.once("message", (message) => void start(message as { readonly count: number; readonly genesisHash: string }));

async function start({ count, genesisHash }: { readonly count: number; readonly genesisHash: string }): Promise<void> {
  const endpoints: string[] = [];
  for (let i = 0; i < count; i++) {
    const odd = { key: newKey(), genesisHash, knowsCaller: true, status: () => ({ accepting: true }) };
    endpoints.push((await startOddPeer({ teardown: () => undefined }, odd)).endpoint);
  }
  process.send?.({ endpoints });
}
