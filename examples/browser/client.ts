/** Calls a node from a page: reads, a stream, a write that is signed here, and errors with their reason. */
import { createGatehouse, createProgram, type Gatehouse, GatehouseError, keyFromSeed } from "gatehouse-client";
import { HealthStatus } from "gatehouse-client/contract/health/v1/health.js";

const show = (id: string, text: string): void => {
  document.getElementById(id)!.textContent = text;
};
const say = (text: string): void => {
  document.querySelector('[role="status"]')!.textContent = text;
};

// A key of this page's visit; a wallet would be `{ publicKey, sign }`.
const signer = keyFromSeed(crypto.getRandomValues(new Uint8Array(32)));
let node: Gatehouse | undefined;

document.querySelector("form")!.addEventListener("submit", (event) => {
  event.preventDefault();
  const form = event.currentTarget as HTMLFormElement;
  const { url, owner } = Object.fromEntries(new FormData(form)) as { url: string; owner: string };
  const isWriting = event.submitter?.getAttribute("value") === "write";
  void node?.close();
  node = createGatehouse(url, { signer });
  void watch(node);
  say(isWriting ? "Writing …" : "Asking …");
  (isWriting ? write(node) : ask(node, owner)).then(say, (error: unknown) => say(explain(error)));
});

async function ask({ info, chain, storage }: Gatehouse, owner: string): Promise<string> {
  show("version", (await info.getVersion({})).version);
  const { number, hash } = await chain.getHead({});
  show("head", `${number}, ${hash}`);
  if (owner !== "") {
    const { programs } = await storage.listProgramsByOwner({ owner });
    show("programs", programs.map(({ programName }) => programName).join(", ") || "none");
  }
  return "Answered.";
}

/** Makes a private program, and reads it as its owner. */
async function write(to: Gatehouse): Promise<string> {
  const { hash, storageAddress } = await to.submit(createProgram({ name: "from a page", data: { hello: "world" } }));
  const { blockNumber } = await to.waitFor(hash);
  const { data } = await to.storage.getProgramData({ storageAddress });
  return `In block ${blockNumber}: ${data ?? "nothing"}`;
}

async function watch(of: Gatehouse): Promise<void> {
  try {
    for await (const { status } of of.watchHealth()) {
      show("health", HealthStatus[status].toLowerCase());
    }
  } catch (error) {
    show("health", explain(error));
  }
}

/** The node's own sentence, and its reason. */
function explain(error: unknown): string {
  return error instanceof GatehouseError ? `${error.message} (${error.reason})` : String(error);
}
