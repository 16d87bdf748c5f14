/** A proxy of a node that replaces single responses, and the alterations of a message: each changes one field. */
import {
  clone,
  create,
  type DescField,
  type DescMessage,
  type DescMethod,
  fromBinary,
  fromJson,
  type JsonValue,
  type Message,
  ScalarType,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { reflect, type ReflectList, type ReflectMessage } from "@bufbuild/protobuf/reflect";
import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";
import {
  BlockHeaderSchema,
  HeadStatementSchema,
  TransactionBodySchema,
} from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { ChainService } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import { InfoService } from "../../../gen/gatehouse/info/v1/info_pb.js";
import { ProgramRecordSchema, StateService } from "../../../gen/gatehouse/state/v1/state_pb.js";
import { ErrorInfoSchema } from "../../../gen/google/rpc/error_details_pb.js";
import { StorageService } from "../../../gen/gatehouse/storage/v1/storage_pb.js";
import { ZkService } from "../../../gen/gatehouse/zk/v1/zk_pb.js";
import { exchange, listen } from "./lying-node.js";
import type { Teardown } from "./teardown.js";

/** Request to the node, and its response. */
export interface Exchange {
  readonly method: DescMethod;
  /** Identifies the rpc and the bytes of the request. */
  readonly key: string;
  readonly response: Message;
}

/** Error in place of a response: a reason of the contract, with its Connect code and HTTP status. */
export interface Claim {
  readonly status: number;
  readonly code: string;
  readonly reason: string;
  readonly message: string;
}

/** Response that differs from the original in one field. */
export interface Alteration {
  /** Full name of the message, and the name of the field. */
  readonly message: string;
  readonly field: string;
  readonly kind: string;
  /** Names of the fields that lead to the field, without positions in lists. */
  readonly path: string;
  readonly altered: Message;
}

const methods = new Map<string, DescMethod>(
  [ChainService, InfoService, StateService, StorageService, ZkService].flatMap((service) =>
    service.methods.map((method) => [`/${service.typeName}/${method.name}`, method as DescMethod] as const),
  ),
);

export type AlteringNode = Awaited<ReturnType<typeof startAlteringNode>>;

/** Returns the replacement of a response or of an error; undefined to leave it unchanged. */
export type Replace = (found: Exchange) => Message | Claim | undefined;

/** Starts the proxy. Each of its URLs is that of a node, with its own changes. */
export async function startAlteringNode(t: Teardown, nodePort: number) {
  /** Changes by the first part of the path. */
  const changes: Replace[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      const [, index, path] = /^\/(\d+)(\/.*)$/.exec(request.url!)!;
      const body = await buffer(request);
      const { "accept-encoding": _, host: __, ...headers } = request.headers;
      const original = await exchange(nodePort, path!, request.method!, headers, body);
      const method = methods.get(path!)!;
      const isJson = request.headers["content-type"] === "application/json";
      const decode = (bytes: Buffer): Message =>
        isJson ? fromJson(method.output, JSON.parse(bytes.toString()) as JsonValue) : fromBinary(method.output, bytes);
      const replacement = changes[Number(index)]!({
        method,
        key: `${method.name} ${body.toString("hex")}`,
        response: original.status === 200 ? decode(original.bytes) : create(method.output),
      });
      const { "content-length": ___, ...rest } = original.headers;
      if (replacement === undefined) {
        response.writeHead(original.status, { ...rest, "content-length": original.bytes.length }).end(original.bytes);
      } else if (!("$typeName" in replacement)) {
        const { status, code, reason, message } = replacement;
        const info = create(ErrorInfoSchema, { reason, domain: "gatehouse" });
        const value = Buffer.from(toBinary(ErrorInfoSchema, info)).toString("base64");
        const details = [{ type: ErrorInfoSchema.typeName, value }];
        response.writeHead(status, { "content-type": "application/json" });
        response.end(JSON.stringify({ code, message, details }));
      } else {
        response.writeHead(200, { "content-type": isJson ? "application/json" : "application/proto" });
        response.end(
          isJson
            ? JSON.stringify(toJson(method.output, replacement as Message))
            : toBinary(method.output, replacement as Message),
        );
      }
    })().catch(() => response.destroy());
  });
  const port = await listen(t, server);
  const urlOf = (replace: Replace): string => `http://127.0.0.1:${port}/${changes.push(replace) - 1}`;
  return {
    /** Returns a URL of the node, with changes of its responses. */
    urlOf,
    /** Returns a URL of the node that records its exchanges. */
    record(exchanges: Exchange[]): string {
      return urlOf((found) => void exchanges.push(found));
    },
  };
}

/** Fields with an encoded message. */
export const encodedMessages: Readonly<Record<string, DescMessage>> = {
  "gatehouse.chain.v1.Block.header": BlockHeaderSchema,
  "gatehouse.chain.v1.GetHeadResponse.header": BlockHeaderSchema,
  "gatehouse.chain.v1.SignedHead.statement": HeadStatementSchema,
  "gatehouse.chain.v1.Transaction.body": TransactionBodySchema,
  "gatehouse.state.v1.GetProofResponse.header": BlockHeaderSchema,
  "gatehouse.state.v1.ProgramState.record": ProgramRecordSchema,
};

type Change = (message: ReflectMessage) => void;

/** Yields all alterations of a message, and of the messages in it. */
export function* alterationsOf(desc: DescMessage, message: Message, path = ""): Generator<Alteration> {
  const changed = (change: Change): Message => {
    const copy = clone(desc, message);
    change(reflect(desc, copy));
    return copy;
  };
  const unknown = { no: 15_000, wireType: 2, data: Uint8Array.of(1, 65) };
  const extended = clone(desc, message);
  extended.$unknown = [...(extended.$unknown ?? []), unknown];
  yield { message: desc.typeName, field: "", kind: "unknown field", path, altered: extended };
  for (const field of desc.fields) {
    const common = { message: desc.typeName, field: field.name, path: `${path}.${field.name}` };
    for (const [kind, change] of changesOf(field, reflect(desc, message))) {
      yield { ...common, kind, altered: changed(change) };
    }
    for (const { inner, value, put } of innerMessages(desc, field, message)) {
      for (const alteration of alterationsOf(inner, value, common.path)) {
        yield { ...alteration, altered: changed((copy) => put(copy, alteration.altered)) };
      }
    }
  }
}

/** Limit on the items of a list that are altered. */
const maxItems = 2;

interface Inner {
  readonly inner: DescMessage;
  readonly value: Message;
  readonly put: (outer: ReflectMessage, altered: Message) => void;
}

function* innerMessages(desc: DescMessage, field: DescField, message: Message): Generator<Inner> {
  const outer = reflect(desc, message);
  const encoded = encodedMessages[`${desc.typeName}.${field.name}`];
  if (encoded !== undefined) {
    const bytes = outer.get(field) as Uint8Array;
    if (bytes.length > 0) {
      yield {
        inner: encoded,
        value: fromBinary(encoded, bytes),
        put: (copy, altered) => copy.set(field, toBinary(encoded, altered)),
      };
    }
  } else if (field.fieldKind === "message" && outer.isSet(field)) {
    const { message: inner } = field;
    const put = (copy: ReflectMessage, altered: Message) => copy.set(field, reflect(inner, altered));
    yield { inner, value: (outer.get(field) as ReflectMessage).message, put };
  } else if (field.fieldKind === "list" && field.listKind === "message") {
    const { message: inner } = field;
    for (let i = 0; i < Math.min(maxItems, outer.get(field).size); i++) {
      const put = (copy: ReflectMessage, altered: Message) =>
        void copy.get(field).set(i, reflect(inner, altered) as never);
      yield { inner, value: (outer.get(field).get(i) as ReflectMessage).message, put };
    }
  }
}

/** Yields the changes of one field, by kind. */
function* changesOf(field: DescField, message: ReflectMessage): Generator<readonly [kind: string, Change]> {
  const { fieldKind } = field;
  if (fieldKind === "map") {
    return;
  }
  if (fieldKind === "list") {
    const { size } = message.get(field);
    if (size > 0) {
      yield ["dropped item", (copy) => dropLast(copy.get(field))];
      yield ["repeated item", (copy) => void copy.get(field).add(copy.get(field).get(0) as never)];
      if (field.listKind !== "message") {
        yield ["changed", (copy) => void copy.get(field).set(0, otherValue(field, copy.get(field).get(0)) as never)];
      }
    } else {
      yield ["added item", (copy) => void copy.get(field).add(valueFor(field) as never)];
    }
    return;
  }
  if (message.isSet(field)) {
    yield ["unset", (copy) => copy.clear(field)];
    if (fieldKind !== "message") {
      yield ["changed", (copy) => copy.set(field, otherValue(field, copy.get(field)) as never)];
      const value = message.get(field);
      if (value instanceof Uint8Array && value.length >= 32) {
        yield ["shortened", (copy) => copy.set(field, value.subarray(32) as never)];
      }
    }
  } else {
    yield ["set", (copy) => copy.set(field, valueFor(field) as never)];
  }
}

function dropLast(list: ReflectList): void {
  const items = [...list];
  list.clear();
  items.slice(0, -1).forEach((item) => list.add(item as never));
}

/** Returns a value for a field that has none. */
function valueFor(field: DescField): unknown {
  if (field.message !== undefined) {
    return reflect(field.message, create(field.message));
  }
  if (field.enum !== undefined) {
    return field.enum.values[1]!.number;
  }
  switch (field.scalar) {
    case ScalarType.STRING:
      return `0x${"1".repeat(64)}`;
    case ScalarType.BYTES:
      return new Uint8Array(64).fill(1);
    case ScalarType.BOOL:
      return true;
    case ScalarType.UINT64:
    case ScalarType.INT64:
      return 1n;
    default:
      return 1;
  }
}

/** Returns another value of the same form. */
function otherValue(field: DescField, value: unknown): unknown {
  if (field.enum !== undefined) {
    const numbers = field.enum.values.map(({ number }) => number);
    return numbers[(numbers.indexOf(value as number) + 1) % numbers.length];
  }
  switch (typeof value) {
    case "string":
      return `${value.slice(0, -1)}${value.endsWith("1") ? "2" : "1"}`;
    case "number":
      return value + 1;
    case "bigint":
      return value + 1n;
    case "boolean":
      return !value;
    default:
      return (value as Uint8Array).map((byte, i, { length }) => (i === length - 1 ? byte ^ 1 : byte));
  }
}
