import test from "ava";
import { RouteTable } from "../../../src/rpc/http/route-table.js";

function storageRoutes() {
  const table = new RouteTable<string>();
  // Declare parameters before the literals that must take precedence.
  table.add("GET", "/storage-program/{storage_address}", "GetProgram", "program");
  table.add("GET", "/storage-program/{storage_address}/fields", "ListFields", "fields");
  table.add("GET", "/storage-program/{storage_address}/field/{field}", "GetField", "field");
  table.add("GET", "/storage-program/{storage_address}/field/{field}/item/{index}", "GetFieldItem", "item");
  table.add("GET", "/storage-program/owner/{owner}", "ListProgramsByOwner", "owner");
  table.add("GET", "/storage-program/search", "SearchPrograms", "search");
  table.add("GET", "/", "GetGreeting", "greeting");
  table.add("POST", "/tlsnotary/verify", "VerifyAttestation", "verify");
  return table;
}

const finds = test.macro({
  exec(t, path: string, endpoint: string | undefined, ...parameters: string[]) {
    const match = storageRoutes().find(path);
    t.is(match && [...match.endpoints.values()][0], endpoint);
    t.deepEqual([...(match?.parameters ?? [])], parameters);
  },
  title: (_, path, endpoint, ...parameters) => `${path} → ${endpoint ?? "nothing"} ${JSON.stringify(parameters)}`,
});

test(finds, "/", "greeting");
test(finds, "//", undefined);
test(finds, "/storage-program", undefined);
test(finds, "/storage-program/stor-1", "program", "stor-1");
test(finds, "/storage-program/stor-1/", "program", "stor-1");
test(finds, "/storage-program/stor-1//", undefined);
test(finds, "/storage-program/search", "search");
test(finds, "/storage-program/search/", "search");
test(finds, "/storage-program/search/fields", "fields", "search");
test(finds, "/storage-program/owner/0xabc", "owner", "0xabc");
test(finds, "/storage-program/owner/fields", "owner", "fields");
test(finds, "/storage-program/owner", "program", "owner");
test(finds, "/Storage-Program/search", undefined);
test(finds, "/storage-program/s/field/a%2Fb", "field", "s", "a/b");
test(finds, "/storage-program/s/field/a%252Fb", "field", "s", "a%2Fb");
test(finds, "/storage-program/s/field/%20", "field", "s", " ");
test(finds, "/storage-program/s/field/", "field", "s", "");
test(finds, "/storage-program/s/field/..", "field", "s", "..");
test(finds, "/storage-program/s/field/a%22b.c%5B0%5D", "field", "s", 'a"b.c[0]');
test(finds, "/storage-program/s/field/%E2%82%AC", "field", "s", "€");
test(finds, "/storage-program/s/field/%00", "field", "s", "\0");
test(finds, "/storage-program/s/field/__proto__", "field", "s", "__proto__");
test(finds, "/storage-program/s/field//item/0", "item", "s", "", "0");
test(finds, "/storage%2Dprogram/search", "search");
test(finds, "/__proto__", undefined);
test(finds, "/constructor", undefined);
for (const malformed of ["/%ZZ", "/storage-program/%", "/storage-program/%C0%AF", "/a/%ff"]) {
  test(finds, malformed, undefined);
}

test("names both rpcs in the error if they claim the same paths", (t) => {
  const table = new RouteTable<string>();
  table.add("GET", "/a/{x}/b", "One", "1");
  table.add("POST", "/a/{x}/b", "Other", "2");
  t.throws(() => table.add("GET", "/a/{y}/b", "Two", "3"), { message: /Two .* One /s });
});

for (const template of ["a", "/a//b", "/{x}/{x}", "/{x=**}", "/a:verb", "/*", "/{X}", "/a/"]) {
  test(`rejects the template ${template}`, (t) => {
    t.throws(() => new RouteTable<string>().add("GET", template, "One", "1"), { message: /Path template/ });
  });
}
