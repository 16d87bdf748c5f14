/** Requests of the forms of /docs, sent as a browser does. */
import test from "ava";
import { startMember } from "../helpers/nodes/start-node.js";
import { storeProgram } from "../helpers/chain/submit.js";

interface FormRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

type CreateRequest = (
  form: { readonly method: string; readonly path: string; readonly rpc: string },
  base: string,
  values: readonly { readonly name: string; readonly in: string; readonly value: string }[],
  headers: Readonly<Record<string, string>>,
) => FormRequest;

test("a request of /docs reads the field of its form, whatever its name", async (t) => {
  const script = new URL("../../../src/pages/docs/request.js", import.meta.url).href;
  const { createRequest } = (await import(script)) as { readonly createRequest: CreateRequest };
  const node = await startMember(t);
  const fields = { ".": 1, "..": 2, "...": 3, "a/../b": 4, "$&": 5, "{field}": 6 };
  const { address } = await storeProgram(t, node, "dots", JSON.stringify(fields));
  const form = { method: "GET", path: "/storage-program/{storageAddress}/field/{field}", rpc: "storage.getField" };
  for (const [name, value] of Object.entries(fields)) {
    const values = [
      { name: "storageAddress", in: "path", value: address },
      { name: "field", in: "path", value: name },
    ];
    const { url, ...options } = createRequest(form, node.rpcUrl, values, {});
    const answer = (await (await fetch(url, options)).json()) as { result?: object };
    t.like(answer.result ?? answer, { field: name, value }, name);
  }
  const unset = [{ name: "field", in: "path", value: "" }];
  t.is(createRequest(form, "http://x", unset, {}).url, `http://x${form.path}`);
});
