/** Calls a node from a page, with Connect: unary calls, a stream, and errors with their reason. */
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { HealthService, HealthStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { InfoService } from "../../gen/gatehouse/info/v1/info_pb.js";
import { StorageService } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";

const form = document.querySelector("form")!;
const show = (id: string, text: string): void => {
  document.getElementById(id)!.textContent = text;
};
const say = (text: string): void => {
  document.querySelector('[role="status"]')!.textContent = text;
};
let watching = new AbortController();

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const { node, owner } = Object.fromEntries(new FormData(form)) as { node: string; owner: string };
  watching.abort();
  watching = new AbortController();
  const transport = createConnectTransport({ baseUrl: node });
  say("Asking …");
  ask(transport, owner).then(
    () => say("Answered."),
    (error: unknown) => say(explain(error)),
  );
  void watch(transport, watching.signal);
});

async function ask(transport: Transport, owner: string): Promise<void> {
  show("version", (await createClient(InfoService, transport).getVersion({})).version);
  const { number, hash } = await createClient(ChainService, transport).getHead({});
  show("head", `${number}, ${hash}`);
  if (owner !== "") {
    const { programs } = await createClient(StorageService, transport).listProgramsByOwner({ owner });
    show("programs", programs.map(({ programName }) => programName).join(", ") || "none");
  }
}

async function watch(transport: Transport, signal: AbortSignal): Promise<void> {
  try {
    for await (const { snapshot } of createClient(HealthService, transport).watchHealth({}, { signal })) {
      show("health", (HealthStatus[snapshot?.status ?? 0] ?? "").toLowerCase());
    }
  } catch (error) {
    if (ConnectError.from(error).code !== Code.Canceled) {
      show("health", explain(error));
    }
  }
}

/** The node's own sentence, and its reason. */
function explain(error: unknown): string {
  const failure = ConnectError.from(error);
  const [info] = failure.findDetails(ErrorInfoSchema);
  return `${failure.rawMessage} (${info?.reason ?? Code[failure.code]})`;
}
