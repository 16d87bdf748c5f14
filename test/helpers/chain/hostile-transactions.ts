/** Hostile transactions that try to stop a chain or to make nodes disagree, reproducible by a seed. */
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
  type Transaction,
  TransactionBodySchema,
  TransactionSchema,
} from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { type AccessControlSchema, AccessMode } from "../../../gen/gatehouse/storage/v1/storage_pb.js";
import { transactionMessage } from "../../../src/chain/transactions/transaction.js";
import { programAddress } from "../../../src/storage/changes/write.js";
import { fieldOrder, toHex } from "../../../src/zk/poseidon.js";
import { proveAnything } from "./groth16.js";
import { createChance, damage, json, sized, text } from "../wire/hostile-values.js";
import { type TestKey, testKey } from "./keys.js";
import type { Operation, ZkChange } from "./transactions.js";

/** The target of the transactions. */
interface HostileOptions {
  readonly seed: number;
  /** Hash of block 0. */
  readonly network: string;
  readonly authority: TestKey;
  readonly nowMs: () => number;
  /** True if spends have proofs for the verification key of the network. */
  readonly hasProofs: boolean;
}

/** A source of transactions. */
export type HostileTransactions = ReturnType<typeof createHostileTransactions>;

type Access = MessageInitShape<typeof AccessControlSchema>;

/** The fields of a body. */
interface BodyParts {
  readonly sender?: string;
  readonly nonce?: bigint;
  readonly timestampMs?: bigint;
  readonly network?: string;
  readonly expiresMs?: bigint;
  readonly operation?: NonNullable<MessageInitShape<typeof TransactionBodySchema>["operation"]>;
}

const mib = 1024 * 1024;
const modes = [AccessMode.PUBLIC, AccessMode.PUBLIC, AccessMode.OWNER, AccessMode.RESTRICTED, AccessMode.RESTRICTED];
const [honestSender, ...people] = Array.from({ length: 8 }, (_, i) => testKey(100 + i)) as [TestKey, ...TestKey[]];
const noOperations: readonly BodyParts["operation"][] = [
  undefined,
  { case: "storage", value: {} },
  { case: "zk", value: {} },
];
const most = BigInt(Number.MAX_SAFE_INTEGER);

/** Creates the source. */
export function createHostileTransactions(options: HostileOptions) {
  const { network, authority, nowMs } = options;
  const chance = createChance(options.seed);
  const nonces = new Map<string, bigint>();
  const addresses = new Set<string>();
  /** Programs that probably exist, with their owners. */
  const programs = new Map<string, string>();
  const elements = new Set<string>();
  const sent: Transaction[] = [];
  let root = toHex(0n);
  /** Keys whose nonces are used up after one transaction. */
  let burnt = 120;
  /** The second of two programs that would have one address if a salt could contain a colon. */
  let twin: Operation | undefined;

  function nextNonce({ publicKey }: TestKey): bigint {
    const nonce = (nonces.get(publicKey) ?? 0n) + 1n;
    nonces.set(publicKey, nonce);
    return nonce;
  }

  function sign(key: TestKey, body: Uint8Array<ArrayBuffer>): Transaction {
    return create(TransactionSchema, { body, signature: key.sign(transactionMessage(body)) });
  }

  function bodyOf(key: TestKey, more: BodyParts): Uint8Array<ArrayBuffer> {
    return toBinary(
      TransactionBodySchema,
      create(TransactionBodySchema, {
        sender: key.publicKey,
        timestampMs: BigInt(nowMs()),
        network,
        expiresMs: BigInt(nowMs() + 600_000),
        ...more,
      }),
    );
  }

  /** Returns the next operation of a key, with its next nonce. */
  function act(key: TestKey): BodyParts {
    const nonce = nextNonce(key);
    const operation = chance.weigh<() => BodyParts["operation"]>([
      [8, () => ({ case: "storage", value: { operation: storageOperation(key, nonce) } })],
      [2, () => ({ case: "zk", value: { operation: zkOperation() } })],
      [1, () => chance.pick(noOperations)],
    ])();
    return { nonce, operation };
  }

  function storageOperation(key: TestKey, nonce: bigint): Operation {
    if (twin !== undefined) {
      const operation = twin;
      twin = undefined;
      return operation;
    }
    const storageAddress = address(key);
    const field = text(chance, 256);
    return chance.weigh<() => Operation>([
      [8, () => createProgram(key, nonce)],
      [3, () => ({ case: "writeProgram", value: { storageAddress, data: data() } })],
      [8, () => ({ case: "setField", value: { storageAddress, field, value: item() } })],
      [3, () => ({ case: "appendItem", value: { storageAddress, field, value: item() } })],
      [3, () => ({ case: "setItem", value: { storageAddress, field, index: index(), value: item() } })],
      [3, () => ({ case: "deleteItem", value: { storageAddress, field, index: index() } })],
      [2, () => ({ case: "deleteField", value: { storageAddress, field } })],
      [3, () => ({ case: "updateAccess", value: { storageAddress, access: access() } })],
      [1, () => ({ case: "deleteProgram", value: { storageAddress } })],
    ])();
  }

  function createProgram({ publicKey }: TestKey, nonce: bigint): Operation {
    const isTwin = chance.below(20) === 0;
    const [programName, salt] = isTwin
      ? ["a", `${nonce + 1n}:x`]
      : [text(chance, 1_024), chance.pick(["", text(chance, 1_024)])];
    if (isTwin) {
      twin = { case: "createProgram", value: { programName: `a:${nonce}`, salt: "x" } };
    }
    addresses.add(programAddress(publicKey, programName, nonce, salt));
    const metadata = chance.weigh<() => string | undefined>([
      [6, () => undefined],
      [2, () => json(chance)],
      [1, () => sized(chance, 16 * 1024)],
    ])();
    return {
      case: "createProgram",
      value: { programName, salt, data: data(), metadata, access: chance.below(3) === 0 ? undefined : access() },
    };
  }

  function data() {
    return chance.weigh<() => NonNullable<Extract<Operation, { case: "writeProgram" }>["value"]["data"]> | undefined>([
      [12, () => ({ data: { case: "json", value: json(chance) } })],
      [8, () => ({ data: { case: "json", value: `{"list":[1,2.50,"a"],"items":[],"a":{"b":[${json(chance)}]}}` } })],
      [2, () => ({ data: { case: "binary", value: chance.bytes(chance.pick([0, 1, 1_000])) } })],
      [2, () => undefined],
      [1, () => ({ data: { case: "json", value: sized(chance, chance.pick([1_000, 70_000, mib])) } })],
    ])();
  }

  function item(): string {
    return chance.below(60) === 0 ? sized(chance, mib) : json(chance);
  }

  function index(): number {
    return chance.pick([0, 0, 0, 1, 2, 3, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1]);
  }

  /** Picks a program of this key, of another key, or a missing one. */
  function address({ publicKey }: TestKey): string {
    const known = [...programs];
    const own = known.filter(([, owner]) => owner === publicKey);
    return chance.weigh<() => string>([
      [own.length === 0 ? 0 : 24, () => chance.pick(own.slice(-4))[0]],
      [known.length === 0 ? 0 : 12, () => chance.pick(known.slice(-8))[0]],
      [addresses.size === 0 ? 0 : 2, () => chance.pick([...addresses])],
      [1, () => chance.pick(["", "stor-", `stor-${"0".repeat(40)}`, `stor-${"A".repeat(40)}`, text(chance, 45)])],
    ])();
  }

  function access(): Access {
    const someone = (): string => chance.pick(people).publicKey;
    const list = (): string[] =>
      chance.weigh<() => string[]>([
        [6, () => []],
        [4, () => [someone(), someone()]],
        [1, () => [chance.pick(["", "0x12", someone().toUpperCase(), `${someone()} `])]],
        [
          chance.below(10) === 0 ? 1 : 0,
          () => Array.from({ length: chance.pick([1_000, 1_001]) }, (_, i) => toHex(BigInt(i))),
        ],
      ])();
    const groupCount = chance.pick([0, 0, 1, 1, 2, 2, 63 + chance.below(3)]);
    const groups = Array.from({ length: groupCount }, (_, i) => {
      const name = groupCount > 2 ? `group ${i}` : text(chance, 256);
      const odd = [[], [2, 2], [0], [7], [1, 1, 1]];
      const permissions = chance.pick([[1], [2], [1, 2], [2, 1], chance.pick(odd)]);
      return [name, { members: list(), permissions }] as const;
    });
    return {
      mode: chance.pick([...modes, ...modes, AccessMode.UNSPECIFIED]),
      allowed: list(),
      blacklisted: list(),
      groups: Object.fromEntries(groups),
    };
  }

  function zkOperation(): ZkChange {
    const element = chance.weigh<() => string>([
      [8, () => toHex(BigInt(1 + chance.below(200)))],
      [1, () => toHex(chance.pick([0n, fieldOrder - 1n, fieldOrder, fieldOrder + 1n, 2n ** 256n - 1n]))],
      [1, () => chance.pick(["", "0x", `0x${"A".repeat(64)}`, `0x${"0".repeat(65)}`, text(chance, 66)])],
    ])();
    elements.add(element);
    if (chance.below(2) === 0) {
      return { case: "addCommitment", value: { commitment: element } };
    }
    return { case: "spendNullifier", value: { nullifierHash: element, ...proof(element) } };
  }

  function proof(nullifierHash: string) {
    if (!options.hasProofs || chance.below(3) === 0) {
      return chance.pick([{}, { root }, { root: toHex(1n), proof: {} }, { proof: { a: chance.bytes(64) } }]);
    }
    const isElement = /^0x[0-9a-f]{64}$/.test(nullifierHash);
    const right = proveAnything([isElement ? BigInt(nullifierHash) % fieldOrder : 0n, BigInt(root)]);
    const proofs = [right, right, { ...right, c: right.a }, { ...right, b: chance.bytes(127) }];
    return { root, proof: chance.pick(proofs) };
  }

  /** Signs a body, correctly or not. */
  function make(): Transaction {
    const key = chance.weigh<TestKey>([...people.map((one) => [4, one] as const), [2, authority]]);
    return chance.weigh<() => Transaction>([
      [60, () => sign(key, bodyOf(key, act(key)))],
      [8, () => sign(key, damage(chance, bodyOf(key, act(key))))],
      [6, () => sign(key, bodyOf(key, { ...act(key), ...oddEnvelope() }))],
      [3, () => wrongSignature(key)],
      [3, () => usedUp()],
      [4, () => (sent.length === 0 ? sign(key, bodyOf(key, act(key))) : chance.pick(sent))],
    ])();
  }

  function oddEnvelope(): BodyParts {
    const now = BigInt(nowMs());
    return chance.pick<BodyParts>([
      { nonce: 0n },
      { nonce: 1n },
      { nonce: most + 1n },
      { nonce: 2n ** 63n },
      { nonce: 2n ** 64n - 1n },
      { timestampMs: -1n },
      { timestampMs: 2n ** 63n - 1n },
      { timestampMs: most },
      { expiresMs: 0n },
      { expiresMs: -1n },
      { expiresMs: now - 1n },
      { expiresMs: now },
      { expiresMs: now + 1n },
      { expiresMs: now + 3_600_000n },
      { expiresMs: now + 3_660_000n },
      { expiresMs: now + 3_660_001n },
      { expiresMs: most },
      { expiresMs: 2n ** 63n - 1n },
      { network: "" },
      { network: toHex(1n) },
      { network: network.toUpperCase() },
      { network: `${network} ` },
      { sender: "" },
      { sender: chance.pick(people).publicKey },
      { sender: chance.pick(people).publicKey.toUpperCase().replace("0X", "0x") },
      // Points of small order, and invalid points.
      { sender: toHex(0n) },
      { sender: `0x01${"00".repeat(31)}` },
      { sender: `0x${"ff".repeat(32)}` },
      { sender: "__proto__" },
    ]);
  }

  function wrongSignature(key: TestKey): Transaction {
    const body = bodyOf(key, act(key));
    const right = key.sign(transactionMessage(body));
    const signature = chance.pick<Uint8Array>([
      key.sign(body),
      chance.pick(people).sign(transactionMessage(body)),
      new Uint8Array(64),
      new Uint8Array(),
      right.subarray(0, 63),
      Buffer.concat([right, Buffer.from([0])]),
      right.with(chance.below(64), chance.below(256)),
      chance.bytes(64),
    ]);
    return create(TransactionSchema, { body, signature: new Uint8Array(signature) });
  }

  /** The largest nonces, with keys that are not used afterwards. */
  function usedUp(): Transaction {
    const key = testKey(burnt);
    burnt = burnt === 250 ? 120 : burnt + 1;
    return sign(
      key,
      bodyOf(key, { ...act(key), nonce: chance.pick([most, most - 1n, 2n ** 52n, 2n ** 31n, 2n ** 32n]) }),
    );
  }

  return {
    next(): Transaction {
      const transaction = make();
      sent.push(transaction);
      sent.splice(0, sent.length - 100);
      return transaction;
    },
    /** Creates a valid transaction of a separate sender. */
    honest(): Transaction {
      const operation: Operation = {
        case: "createProgram",
        value: {
          programName: "honest",
          data: { data: { case: "json", value: '{"a":1}' } },
          access: { mode: AccessMode.PUBLIC },
        },
      };
      const nonce = nextNonce(honestSender);
      addresses.add(programAddress(honestSender.publicKey, "honest", nonce, ""));
      return sign(honestSender, bodyOf(honestSender, { nonce, operation: { case: "storage", value: { operation } } }));
    },
    /** Reports that a node has accepted a transaction. Later ones build on it. */
    learnTaken({ body }: Transaction): void {
      const { operation, sender, nonce } = fromBinary(TransactionBodySchema, body);
      const change = operation.case === "storage" ? operation.value.operation : undefined;
      if (change?.case === "createProgram") {
        programs.set(programAddress(sender, change.value.programName, nonce, change.value.salt), sender);
      } else if (change?.case === "deleteProgram") {
        programs.delete(change.value.storageAddress);
      }
    },
    /** Sets the latest commitment root. */
    learnRoot(newest: string): void {
      root = newest;
    },
    senders: [honestSender, ...people, authority].map(({ publicKey }) => publicKey) as readonly string[],
    /** Addresses of programs that may have been created so far. */
    addresses: addresses as ReadonlySet<string>,
    /** Commitments that may have been added, and nullifiers that may have been spent, so far. */
    elements: elements as ReadonlySet<string>,
  };
}
