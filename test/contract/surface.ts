/** Plain requests besides the cases: pages, documents, preflights, and unknown paths and methods. */
import type { PlainRequest } from "../helpers/wire/plain-client.js";

const pages = ["/docs", "/explore", "/openapi.json", "/status"];
const rpc = "/gatehouse.info.v1.InfoService/GetVersion";
const json = { "Content-Type": "application/json" };

const unknownPaths = [
  "/nothing",
  "/nothing/at/all?x=1",
  "//",
  "//version",
  "/version/",
  "/version//",
  "/VERSION",
  "/./version",
  "/../version",
  "/%76ersion",
  "/version%2f",
  "/%",
  "/%ZZ",
  "/%00",
  "/%C0%AF",
  "/%2e%2e/%2e%2e/etc/passwd",
  "/storage-program/%ZZ",
  "/storage-program//all",
  "/storage-program/stor-1/field/%FF",
  "/zk/nullifier/",
  "/gatehouse.info.v1.InfoService",
  "/gatehouse.info.v1.InfoService/",
  "/gatehouse.info.v1.InfoService/Nothing",
  "/gatehouse.nothing.v1.NothingService/GetVersion",
  `/${"a".repeat(4_000)}`,
];

/** Requests by description. */
export const surface: Readonly<Record<string, readonly [path: string, request?: PlainRequest]>> = Object.fromEntries(
  (
    [
      ...pages.flatMap((path) => [
        [path, {}],
        [path, { method: "HEAD" }],
        [path, { method: "POST", body: "" }],
        [`${path}?x=%ZZ`, {}],
        [`${path}/`, {}],
      ]),
      ...["/version", "/docs", "/", rpc, "/nothing", "/%ZZ"].map((path) => [
        path,
        { method: "OPTIONS", headers: { Origin: "https://example.org", "Access-Control-Request-Method": "POST" } },
      ]),
      ...["/version", "/livez", "/", "/nothing", "/storage-program/search?q=", "/%ZZ"].map((path) => [
        path,
        { method: "HEAD" },
      ]),
      ...["PUT", "DELETE", "PATCH", "PROPFIND"].flatMap((method) =>
        ["/version", "/", "/docs", rpc, "/nothing"].map((path) => [path, { method }]),
      ),
      ["/version", { method: "POST", body: "{}", headers: json }],
      ["/tlsnotary/verify", {}],
      [rpc, {}],
      [rpc, { method: "HEAD" }],
      [rpc, { method: "POST", body: "{}", headers: { "Content-Type": "text/plain" } }],
      [rpc, { method: "POST", body: "{}" }],
      [rpc, { method: "POST", body: "{", headers: json }],
      ["/", { method: "POST", body: "{", headers: json }],
      ["/", { method: "POST", body: "[]", headers: json }],
      ["/", { method: "POST", body: "{}" }],
      ["/", { method: "POST", body: " ".repeat(3_000_000), headers: json }],
      ["/version", { headers: { identity: "nobody", signature: "0", timestamp: "1" } }],
      ["/version", { headers: { Origin: "https://example.org" } }],
      ...unknownPaths.map((path) => [path, {}]),
    ] as [string, PlainRequest][]
  ).map(([path, request]) => [titleOf(path, request), [path, request]]),
);

function titleOf(path: string, { method = "GET", body, headers = {} }: PlainRequest): string {
  const shortPath = path.length > 100 ? `a path of ${path.length} characters` : path;
  const bodyText =
    body === undefined ? "" : `, ${body.length} bytes of ${String(headers["Content-Type"] ?? "nothing")}`;
  const headerNames = Object.keys(headers).filter((name) => name !== "Content-Type");
  return `${method} ${shortPath}${bodyText}${headerNames.length === 0 ? "" : `, with ${headerNames.join(", ")}`}`;
}
