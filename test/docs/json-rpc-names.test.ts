/** JSON-RPC with the parameter names of docs/interface.md: each rpc responds like its route with the same values. */
import test from "ava";
import { readFile } from "node:fs/promises";
import { testKey } from "../helpers/chain/keys.js";
import { ask, askJson } from "../helpers/wire/plain-client.js";
import { startMember } from "../helpers/nodes/start-node.js";
import { storeProgram } from "../helpers/chain/submit.js";

/** Rows of the table of routes. */
const rows = [
  ...(await readFile("docs/interface.md", "utf8")).matchAll(/^\| `GET ([^`]+)` +\| `([\w.]+)` +\| (.*?) +\|$/gm),
].map(([, template = "", method = "", description = ""]) => ({ template, method, description }));

interface JsonRpcResponse {
  readonly result?: unknown;
  readonly error?: { readonly message: string; readonly data: { readonly reason: string } };
}

test("each rpc accepts over JSON-RPC the parameter names in the table of routes", async (t) => {
  const node = await startMember(t, { "tlsnotary-enabled": true });
  const { address } = await storeProgram(t, node, "notes", '{"list":[1.0,"two"]}', testKey(90));
  const { hash } = (await askJson(node.port, "/chain/head")) as { hash: string };
  const known: Readonly<Record<string, string>> = {
    ...{ storageAddress: address, field: "list", index: "1", owner: testKey(90).publicKey, q: "notes", hash },
    ...{ number: "1", blockNumber: "1", block: "1", sender: testKey(90).publicKey, address: testKey(90).publicKey },
    ...{ commitment: hash, nullifierHash: hash, root: hash, withBody: "true" },
  };
  let named = 0;
  for (const { template, method, description } of rows.filter(
    ({ description }) => !description.includes("(#streams)") && !description.includes("(#events)"),
  )) {
    const inPath = [...template.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);
    const inQuery = [...description.matchAll(/`\?(\w+)=`/g)].map(([, name]) => name!);
    const names = [...inPath, ...inQuery];
    named += names.length;
    t.deepEqual(
      names.filter((name) => known[name] === undefined),
      [],
      method,
    );
    const path = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(known[name]!));
    const query = new URLSearchParams(Object.fromEntries(inQuery.map((name) => [name, known[name]!]))).toString();
    const plain = JSON.parse((await ask(node.port, `${path}?${query}`)).text) as { error?: string };
    const request = {
      jsonrpc: "2.0",
      id: 1,
      method,
      params: Object.fromEntries(names.map((name) => [name, known[name]])),
    };
    const { text } = await ask(node.port, "/", { method: "POST", body: JSON.stringify(request) });
    const { result, error } = JSON.parse(text) as JsonRpcResponse;
    if (error === undefined) {
      t.deepEqual(normalize(result), normalize(plain), method);
    } else {
      t.is(error.message, plain.error!, method);
      t.not(error.data.reason, "INVALID_REQUEST", method);
    }
  }
  t.true(named > 25);
});

/** Replaces values that differ between requests by 0. */
function normalize(response: unknown): unknown {
  return JSON.parse(
    JSON.stringify(response, (name, value: unknown) =>
      /^(uptime_s|heartbeat_age_s|iterations_total|time|timestamp|since|activeRequests|at)$/.test(name) ? 0 : value,
    ),
  );
}
