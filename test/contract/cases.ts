/** Every request of the contract. The responses are in the snapshots. */
import { IMT } from "@zk-kit/imt";
import { poseidon2 } from "poseidon-lite/poseidon2";
import { buildPresentation } from "../helpers/process/presentation.js";
import { type CallerName, type ContractCase, contractCase } from "./case.js";
import {
  binary,
  deleted,
  empty,
  exotic,
  firstBlockHash,
  forgedTransaction,
  friend,
  hidden,
  includedHash,
  lastBlock,
  leaves,
  list,
  owner,
  pendingHash,
  pendingTransaction,
  rejectedHash,
  shared,
  spentNullifier,
  unknown,
  usedNonce,
} from "./data.js";

const newcomer = { node: "newcomer" } as const;

/** Page token for the programs after the public one, `exotic`. */
const afterExotic = "cHJvZ3JhbXMuc3Rvci0xMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTEx";

const healthCases = [
  contractCase("/health", "ok"),
  contractCase("/health", "dormant", newcomer),
  contractCase("/health/subsystems", "ok"),
  contractCase("/health/subsystems", "dormant", newcomer),
  contractCase("/livez", "alive"),
  contractCase("/livez?verbose", "all checks"),
  contractCase("/readyz", "ready"),
  contractCase("/readyz", "not ready", newcomer),
  contractCase("/readyz?verbose=true", "all checks", newcomer),
  contractCase("/readyz?exclude=dormant&exclude=accepting&exclude=chain", "checks left out", newcomer),
  contractCase("/readyz?exclude=moon", "no such check"),
];

const infoCases = [
  contractCase("/", "greeting"),
  contractCase("/info", "with a peer"),
  contractCase("/info", "without peers", newcomer),
  contractCase("/version", "version"),
  contractCase("/publickey", "key"),
  contractCase("/connectionstring", "address"),
  contractCase("/peerlist", "with a peer"),
  contractCase("/peerlist", "empty", newcomer),
  contractCase("/public_logs", "lines"),
  contractCase("/diagnostics", "lines"),
  contractCase("/mcp", "stopped"),
  contractCase("/genesis", "text"),
  contractCase("/genesis", "none yet", newcomer),
  contractCase("/rate-limit/stats", "counts"),
];

const at = (address: string, rest = ""): string => `/storage-program/${address}${rest}`;

/** Cases for every route at an address, for permitted and other callers. */
const onEveryRoute = ([address, title, caller]: readonly [string, string, CallerName?]): ContractCase[] =>
  routesAt(address, caller === undefined ? title : `${title}, ${caller}`, caller === undefined ? {} : { caller });

const routesAt = (address: string, title: string, by: { readonly caller?: CallerName }): ContractCase[] => [
  contractCase(at(address), title, by),
  contractCase(at(address, "/all"), title, by),
  contractCase(at(address, "/fields"), title, by),
  contractCase(at(address, "/field/secret"), title, by),
  contractCase(at(address, "/field/secret/item/0"), title, by),
  contractCase(at(address, "/has/secret"), title, by),
  contractCase(at(address, "/type/secret"), title, by),
];

const field = (name: string, title = "value"): ContractCase =>
  contractCase(at(exotic, `/field/${encodeURIComponent(name)}`), `${title} of ${JSON.stringify(name)}`);

const item = (name: string, index: number, title: string): ContractCase =>
  contractCase(at(exotic, `/field/${name}/item/${index}`), title);

const storageCases = [
  contractCase(at(exotic), "public"),
  contractCase(at(binary), "binary"),
  contractCase(at(list), "array, with a group"),
  contractCase(at(empty), "empty"),
  contractCase(at(exotic, "/all"), "as written"),
  contractCase(at(empty, "/all"), "empty"),
  contractCase(at(exotic, "/fields"), "names"),
  ...["name", "ratio", "big", "items", "flag", "nothing", "nested"].map((name) => field(name)),
  ...["constructor", "__proto__", "a.b", 'a"b', "a/b", "ключ 😀", " "].map((name) => field(name, "exotic name")),
  contractCase(at(exotic, "/field/"), "empty name"),
  field("toString", "no such field"),
  field("secret", "field of another program"),
  item("items", 0, "number"),
  item("items", 1, "string with brackets"),
  item("items", 2, "object"),
  item("items", 3, "last"),
  item("items", 4, "out of bounds"),
  item("none", 0, "of an empty array"),
  item("name", 0, "of a string"),
  item("toString", 0, "of no field"),
  contractCase(at(exotic, "/field/items/item/0?fromEnd=true&withLength=true"), "the last"),
  contractCase(at(exotic, "/field/items/item/x"), "malformed index", { request: null }),
  contractCase(at(exotic, "/field/items/item/-1"), "negative index", { request: null }),
  contractCase(at(exotic, "/has/__proto__"), "exists"),
  contractCase(at(exotic, "/has/toString"), "does not"),
  contractCase(at(exotic, "/type/nested"), "object"),
  contractCase(at(exotic, "/type/valueOf"), "no field"),
  contractCase(at(list, "/fields"), "not an object"),
  contractCase(at(binary, "/field/a"), "not an object"),
  contractCase(at(empty, "/has/a"), "not an object"),
  ...(
    [
      [hidden, "owner only"],
      [shared, "restricted"],
      [deleted, "deleted"],
      [unknown, "unknown"],
      ["stor-XYZ", "malformed address"],
    ] as const
  ).flatMap(onEveryRoute),
  ...(["owner", "friend", "member", "enemy"] as const).flatMap((caller) => [
    ...onEveryRoute([shared, "restricted", caller]),
    ...onEveryRoute([hidden, "owner only", caller]),
    ...onEveryRoute([deleted, "deleted", caller]),
    contractCase(at(exotic, "/all"), `public, ${caller}`, { caller }),
    contractCase(`/storage-program/owner/${owner}`, `for ${caller}`, { caller }),
    contractCase("/storage-program/search?q=d", `for ${caller}`, { caller }),
  ]),
  contractCase(`/storage-program/owner/${owner}`, "public ones"),
  contractCase(`/storage-program/owner/${friend.slice(2).toUpperCase()}`, "upper case, no 0x"),
  contractCase(`/storage-program/owner/${friend}?limit=1&offset=1`, "second page"),
  contractCase("/storage-program/owner/bob", "malformed owner"),
  contractCase(`/storage-program/owner/${owner}?limit=0`, "limit 0"),
  contractCase(`/storage-program/owner/${owner}?limit=201`, "limit 201"),
  ...["limit=abc", "limit=1e3", "limit=-1", "limit=", "limit=5&limit=5", "offset=1.5", "offset=99999999999"].map(
    (query) => contractCase(`/storage-program/owner/${owner}?${query}`, query, { request: null }),
  ),
  contractCase(`/storage-program/owner/${owner}?limit=1`, "first page"),
  contractCase(`/storage-program/owner/${owner}?pageToken=x`, "no page token"),
  contractCase(`/storage-program/${exotic}/history`, "nothing in blocks"),
  contractCase(`/storage-program/${unknown}/history`, "unknown"),
  contractCase(`/storage-program/${hidden}/history`, "hidden"),
  contractCase("/storage-program/stor-1/history", "no address"),
  contractCase(`/storage-program/${exotic}/history?pageToken=x`, "no page token"),
  contractCase(`/storage-program/${exotic}/history?pageSize=1&pageToken=aGlzdG9yeS45LjA`, "a page"),
  contractCase(`/storage-program/owner/${owner}?pageToken=${afterExotic}`, "next page"),
  contractCase(`/storage-program/search?q=o&pageToken=${afterExotic}`, "next page"),
  contractCase("/storage-program/search?q=exotic", "part, any case"),
  contractCase("/storage-program/search?q=EXOTIC&exact=true", "exact"),
  contractCase("/storage-program/search?q=100%25", "percent sign"),
  contractCase("/storage-program/search?q=c_l", "underscore"),
  contractCase("/storage-program/search?q=%25", "only a percent sign"),
  contractCase("/storage-program/search?q=hidden", "not readable"),
  contractCase("/storage-program/search?q=", "empty"),
  contractCase("/storage-program/search", "missing"),
  contractCase("/storage-program/search?q=a&exact=perhaps", "not a boolean", { request: null }),
  contractCase("/storage-program/search?q=%FF", "malformed encoding", { request: null }),
];

const ofLeaf = (title: string, commitment: string, root?: string): ContractCase =>
  contractCase(`/zk/merkle/proof/${encodeURIComponent(commitment)}${root === undefined ? "" : `?root=${root}`}`, title);
const ofNullifier = (title: string, nullifierHash: string): ContractCase =>
  contractCase(`/zk/nullifier/${encodeURIComponent(nullifierHash)}`, title);
const rootAfter = (title: string, block: bigint): ContractCase => contractCase(`/zk/merkle-root?block=${block}`, title);

const upper = (hash: string): string => `0x${hash.slice(2).toUpperCase()}`;
const [firstLeaf, secondLeaf, lastLeaf] = leaves;
const noLeaf = `0x${"4".padStart(64, "0")}`;
const malformed = [
  ["without 0x", firstLeaf.slice(2)],
  ["too short", firstLeaf.slice(0, -1)],
  ["too long", `${firstLeaf}0`],
  ["no hex", `${firstLeaf.slice(0, -1)}g`],
  ["an upper-case X", `0X${firstLeaf.slice(2)}`],
  ["a space after it", `${firstLeaf} `],
] as const;
/** Roots after blocks 1 and 2, from Poseidon(1, 2) and so on, computed by another implementation. */
const [rootOfOne, rootOfTwo] = [1, 2].map((count) => {
  const tree = new IMT(poseidon2, 20, 0n, 2, leaves.slice(0, count).map(BigInt));
  return `0x${BigInt(tree.root).toString(16).padStart(64, "0")}`;
}) as [string, string];

const zkCases = [
  contractCase("/zk/merkle-root", "three leaves"),
  contractCase("/zk/merkle-root", "empty tree", newcomer),
  rootAfter("before the last leaf", BigInt(lastBlock - 1)),
  rootAfter("after the newest block", BigInt(lastBlock)),
  rootAfter("the oldest that is known", BigInt(lastBlock - 255)),
  rootAfter("too old", BigInt(lastBlock - 256)),
  rootAfter("the genesis", 0n),
  rootAfter("not there yet", BigInt(lastBlock + 1)),
  rootAfter("beyond", 2n ** 64n - 1n),
  contractCase("/zk/merkle-root?block=x", "no number", { request: null }),
  contractCase("/zk/merkle-root?block=1&block=2", "twice", { request: null }),
  contractCase(`/zk/merkle/proof/${firstLeaf}`, "empty tree", newcomer),
  ofLeaf("first leaf", firstLeaf),
  ofLeaf("second leaf", secondLeaf),
  ofLeaf("last leaf", lastLeaf),
  ofLeaf("last leaf, upper case", upper(lastLeaf)),
  ofLeaf("unknown", noLeaf),
  ofLeaf("first leaf under an older root", firstLeaf, rootOfTwo),
  ofLeaf("first leaf under an older root, upper case", firstLeaf, upper(rootOfTwo)),
  ofLeaf("first leaf under a root that is too old", firstLeaf, rootOfOne),
  ofLeaf("last leaf under a root before it", lastLeaf, rootOfTwo),
  ofLeaf("unknown under an older root", noLeaf, rootOfTwo),
  ofLeaf("first leaf under no root", firstLeaf, noLeaf),
  ...malformed.map(([title, hash]) => ofLeaf(title, hash)),
  ofLeaf("malformed root", firstLeaf, "0x12"),
  ofNullifier("spent", spentNullifier),
  ofNullifier("spent, upper case", upper(spentNullifier)),
  ofNullifier("unspent", `0x${"9".repeat(64)}`),
  ...malformed.map(([title, hash]) => ofNullifier(title, hash)),
];

const proof = (
  title: string,
  request: Readonly<Record<string, string | bigint | boolean | readonly string[]>>,
  more: { readonly node?: "newcomer"; readonly caller?: CallerName } = {},
): ContractCase => {
  const pairs = Object.entries(request).flatMap(([name, values]) =>
    (Array.isArray(values) ? (values as string[]) : [String(values)]).map((value): [string, string] => [name, value]),
  );
  const query = new URLSearchParams(pairs).toString();
  return contractCase(`/state/proof${query === "" ? "" : `?${query}`}`, title, more);
};

const nobody = `0x${"9".repeat(64)}`;
const stateCases = [
  proof("the header alone", {}),
  proof("none yet", {}, newcomer),
  proof("a document", { storageAddress: exotic, withDocument: true, withMetadata: true }),
  proof("fields, there and not", { storageAddress: exotic, fields: ["nested", "absent", "__proto__"] }),
  proof("a list", { storageAddress: list, withDocument: true }),
  proof("a list has no fields", { storageAddress: list, fields: ["a"] }),
  proof("bytes", { storageAddress: binary, withDocument: true, withMetadata: true }),
  proof("an empty program", { storageAddress: empty, withDocument: true }),
  proof("a deleted program", { storageAddress: deleted, withDocument: true, withMetadata: true }),
  proof("no such program", { storageAddress: unknown, fields: ["a"], withDocument: true }),
  proof("a malformed address", { storageAddress: "stor-1" }),
  ...(["owner", "friend", "member", "enemy"] as const).flatMap((caller) => [
    proof(`private, for ${caller}`, { storageAddress: hidden, withDocument: true }, { caller }),
    proof(`shared, for ${caller}`, { storageAddress: shared, fields: ["a"] }, { caller }),
  ]),
  proof("private, for anybody", { storageAddress: hidden }),
  proof("nullifiers and senders", { nullifiers: [spentNullifier, nobody], senders: [owner, nobody] }),
  proof("commitments", { withCommitments: true }),
  proof("after an older block", { storageAddress: exotic, withCommitments: true, block: BigInt(lastBlock - 1) }),
  proof("after the oldest block", { senders: [owner, nobody], withCommitments: true, block: BigInt(lastBlock - 255) }),
  proof("too old", { block: BigInt(lastBlock - 256) }),
  proof("not there yet", { block: BigInt(lastBlock + 1) }),
  proof("too many", { fields: Array.from({ length: 33 }, (_, i) => `f${i}`), storageAddress: exotic }),
  proof("named twice", { fields: ["a", "a"], storageAddress: exotic }),
  proof("fields of nothing", { fields: ["a"] }),
  proof("a malformed nullifier", { nullifiers: ["0x1"] }),
  proof("a malformed sender", { senders: ["alice"] }),
  contractCase("/state/proof?block=x", "no number", { request: null }),
];

const verify = (title: string, post: string, attested?: string, more = {}): ContractCase => {
  const request = attested === undefined ? null : { attestation: attested };
  return contractCase("/tlsnotary/verify", title, { post, request, ...more });
};

const presentation = buildPresentation();
const inBase64 = presentation.toString("base64");
const verified = (title: string, attested: string): ContractCase =>
  verify(title, JSON.stringify({ attestation: attested }), attested);
const asJson = (version: string): string =>
  JSON.stringify({ version, data: presentation.toString("hex"), meta: { notaryUrl: "not believed" } });
const altered = Buffer.from(presentation);
altered[400]! ^= 1;

const attestationCases = [
  contractCase("/tlsnotary/health", "healthy"),
  contractCase("/tlsnotary/health", "dormant", newcomer),
  contractCase("/tlsnotary/info", "running"),
  contractCase("/tlsnotary/info", "dormant", newcomer),
  verified("base64", inBase64),
  verified("hex", presentation.toString("hex")),
  verified("JSON of browser clients", asJson("0.1.0-alpha.12")),
  verified("JSON in base64", Buffer.from(asJson("0.1.0-alpha.11")).toString("base64")),
  verified("a version that is not supported", asJson("0.1.0-alpha.7")),
  verified("a byte behind the end", Buffer.concat([presentation, Buffer.from([0])]).toString("base64")),
  verified("altered", altered.toString("base64")),
  verified("too large", Buffer.alloc(512 * 1024 + 1, 1).toString("base64")),
  verified("nothing that is known", "%%%"),
  verified("noise", "AAAA"),
  verify("dormant", JSON.stringify({ attestation: inBase64 }), inBase64, newcomer),
  verify("missing", "{}", ""),
  verify("wrong type", '{"attestation":7}'),
  verify("not JSON", "{"),
  verify("not an object", "[]"),
  verify("empty body", ""),
];

const submit = (title: string, transaction: typeof pendingTransaction, more = {}): ContractCase => {
  const { body, signature } = transaction;
  const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");
  const json = JSON.stringify({ transaction: { body: base64(body), signature: base64(signature) } });
  const request = { transaction: { body, signature } };
  return contractCase("/chain/transactions", title, { post: json, request, ...more });
};
const ofTransaction = (title: string, hashOf: string): ContractCase =>
  contractCase(`/chain/transactions/${hashOf}`, title);

// Last, because submitted transactions stay pending.
const ofBlock = (title: string, hash: string): ContractCase => contractCase(`/chain/blocks/hash/${hash}`, title);

const chainCases = [
  contractCase("/chain/head", "the newest block"),
  contractCase("/chain/head", "none yet", newcomer),
  contractCase("/chain/blocks/1", "with a transaction"),
  contractCase("/chain/blocks/0", "the genesis"),
  contractCase("/chain/blocks/2", "with a commitment root"),
  contractCase(`/chain/blocks/${lastBlock + 1}`, "none yet"),
  contractCase("/chain/blocks/18446744073709551614", "beyond"),
  contractCase("/chain/blocks/18446744073709551615", "the newest"),
  contractCase("/chain/blocks/latest", "the newest, in a word"),
  contractCase("/chain/blocks/latest", "the newest of none", newcomer),
  contractCase("/chain/blocks", "all"),
  contractCase("/chain/blocks", "none yet", newcomer),
  contractCase("/chain/blocks?pageSize=1", "the first page"),
  contractCase("/chain/blocks?pageToken=YmxvY2tzLjI", "another page"),
  contractCase("/chain/blocks?pageSize=201", "too many"),
  contractCase("/chain/blocks?pageToken=x", "no page token"),
  contractCase("/chain/transactions", "all"),
  contractCase("/chain/transactions?pageSize=1", "the first page"),
  contractCase("/chain/transactions?blockNumber=latest", "of the newest block"),
  contractCase("/chain/transactions?blockNumber=1", "of a block"),
  contractCase("/chain/transactions?pageToken=dHJhbnNhY3Rpb25zLjMuMA", "the next page"),
  contractCase("/chain/transactions?blockNumber=0", "of the genesis"),
  contractCase(`/chain/transactions?sender=${owner}`, "of a sender"),
  contractCase("/chain/transactions?sender=alice", "of no key"),
  contractCase("/chain/transactions?pageToken=YmxvY2tzLjI", "another list's page token"),
  contractCase("/chain/blocks/x", "no number", { request: null }),
  ofBlock("the first", firstBlockHash),
  ofBlock("in upper case", `0x${firstBlockHash.slice(2).toUpperCase()}`),
  ofBlock("unknown", `0x${"9".repeat(64)}`),
  ofBlock("no hash", "0x12"),
  contractCase("/chain/pending", "none", newcomer),
  contractCase("/chain/pending?limit=0", "too few"),
  contractCase("/chain/pending?limit=201", "too many"),
  ofTransaction("included", includedHash),
  ofTransaction("rejected", rejectedHash),
  ofTransaction("in upper case", `0x${includedHash.slice(2).toUpperCase()}`),
  ofTransaction("unknown", `0x${"9".repeat(64)}`),
  ofTransaction("no hash", "0x12"),
  ofTransaction("without 0x", includedHash.slice(2)),
  contractCase(`/chain/transactions/${includedHash}?withBody=true`, "with what it says"),
  contractCase(`/chain/senders/${owner}`, "somebody who wrote"),
  contractCase(`/chain/senders/${"9".repeat(64)}`, "nobody"),
  contractCase("/chain/senders/alice", "no key"),
  submit("pending", pendingTransaction),
  submit("again", pendingTransaction),
  ofTransaction("pending", pendingHash),
  submit("not signed by its sender", forgedTransaction),
  submit("a nonce that is used", usedNonce),
  submit("on a node without a chain", pendingTransaction, newcomer),
  contractCase("/chain/transactions", "nothing", { post: "{}" }),
  contractCase("/chain/transactions", "no base64", {
    request: null,
    post: '{"transaction":{"body":"%"}}',
  }),
];

const searchCases = [
  ...Object.entries({
    "a block's number": "1",
    "the newest block": "latest",
    "a block's hash": firstBlockHash,
    "a transaction": includedHash,
    "a rejected transaction": rejectedHash,
    "a key, without 0x": owner.slice(2),
    "a leaf": leaves[0]!,
    "a nullifier": spentNullifier,
    "an address": exotic,
    "a program that is not readable": hidden,
    "a name": "Exotic 100%",
    "a part of a name": "otic",
    "nothing of that name": "no such thing",
  }).map(([title, query]) => contractCase(`/search?q=${encodeURIComponent(query)}`, title)),
  contractCase(`/search?q=${hidden}`, "the owner's program", { caller: "owner" }),
  contractCase("/search?q=+", "nothing"),
  contractCase("/search?q=1", "no block yet", newcomer),
];

/** All cases. */
export const cases: readonly ContractCase[] = [
  ...healthCases,
  ...infoCases,
  ...storageCases,
  ...zkCases,
  ...attestationCases,
  ...stateCases,
  ...searchCases,
  ...chainCases,
];
