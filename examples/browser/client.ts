/** Calls a node from a page: reads, a stream, a write that the page signs, and errors with their reason. */
import { createGatehouse, createProgram, type Gatehouse, GatehouseError, keyFromSeed } from "gatehouse-client";
import { HealthStatus } from "gatehouse-client/contract/health/v1/health.js";

const show = (id: string, text: string): void => {
  document.getElementById(id)!.textContent = text;
};
const setStatus = (text: string): void => {
  document.querySelector('[role="status"]')!.textContent = text;
};

// A new key for each visit. A wallet provides `{ publicKey, sign }` instead.
const signer = keyFromSeed(crypto.getRandomValues(new Uint8Array(32)));
let node: Gatehouse | undefined;

document.querySelector("form")!.addEventListener("submit", (event) => {
  event.preventDefault();
  const form = event.currentTarget as HTMLFormElement;
  const { url, owner: entered } = Object.fromEntries(new FormData(form)) as { url: string; owner: string };
  const owner = entered === "" ? signer.publicKey : entered;
  const isWriting = event.submitter?.getAttribute("value") === "write";
  void node?.close();
  node = createGatehouse(url, { signer });
  void watch(node);
  setStatus(isWriting ? "Writing …" : "Querying …");
  (isWriting ? write(node, owner) : query(node, owner)).then(setStatus, (error: unknown) => setStatus(explain(error)));
});

async function query({ info, chain, storage }: Gatehouse, owner: string): Promise<string> {
  show("version", (await info.getVersion({})).version);
  const { number, hash } = await chain.getHead({});
  show("head", `${number}, ${hash}`);
  const { programs } = await storage.listProgramsByOwner({ owner });
  show("programs", programs.map(({ programName }) => programName).join(", ") || "none");
  return "Done.";
}

/** Creates a private program, reads it as its owner, and shows the latest values. */
async function write(client: Gatehouse, owner: string): Promise<string> {
  const { hash, storageAddress } = await client.submit(
    createProgram({ name: "from a page", data: { hello: "world" } }),
  );
  const { blockNumber } = await client.waitFor(hash);
  const { data } = await client.storage.getProgramData({ storageAddress });
  await query(client, owner);
  return `In block ${blockNumber}: ${data ?? "nothing"}`;
}

/** Shows the health of the node as it changes. */
async function watch(client: Gatehouse): Promise<void> {
  try {
    for await (const { status } of client.watchHealth()) {
      show("health", HealthStatus[status].toLowerCase());
    }
  } catch (error) {
    show("health", explain(error));
  }
}

/** The message of an error, with its reason. */
function explain(error: unknown): string {
  return error instanceof GatehouseError ? `${error.message} (${error.reason})` : String(error);
}
