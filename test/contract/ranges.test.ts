/** Ranges of the contract: comments equal declarations, and a running node enforces their limits. */
import {
  create,
  type DescField,
  type DescMethod,
  type DescService,
  fromBinary,
  getOption,
  hasOption,
  ScalarType,
} from "@bufbuild/protobuf";
import test from "ava";
import { bounds as boundsOption } from "../../gen/gatehouse/annotations/v1/annotations_pb.js";
import { BlockHeaderSchema } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { ChainService, type ListBlocksResponse } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { ControlService } from "../../gen/gatehouse/control/v1/control_pb.js";
import { EventService } from "../../gen/gatehouse/event/v1/event_pb.js";
import { SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { rangeOf } from "../../src/rpc/codec/fields.js";
import { commentOf } from "../../src/rpc/describe/comments.js";
import { contractServices } from "../helpers/process/contract-files.js";
import { connectRpc, readFailure, type RpcClient } from "../helpers/wire/rpc-clients.js";
import { fileTeardown } from "../helpers/nodes/teardown.js";
import { cases } from "./cases.js";
import { type ContractNodes, startContractNodes } from "./nodes.js";

/** Limits of a field; a missing limit is undefined. */
interface Limits {
  readonly of: "number" | "characters" | "items";
  readonly min: bigint | undefined;
  readonly max: bigint | undefined;
}

interface LimitedField {
  readonly method: DescMethod;
  readonly field: DescField;
}

/** Services between nodes, which validate their own requests. */
const isPublic = ({ typeName }: DescService): boolean => /^gatehouse\.(?!peer\.)/.test(typeName);
const services = (await contractServices()).filter(isPublic);
const fields = services.flatMap(({ methods }) =>
  methods.flatMap((method) => method.input.fields.map((field): LimitedField => ({ method, field }))),
);

const typeMax = 2n ** 32n - 1n;

/** Returns the declared limits. The minimum and maximum of the type do not count. */
function declaredLimits(field: DescField): Limits | undefined {
  if (!hasOption(field, boundsOption)) {
    return undefined;
  }
  const { minCharacters, maxCharacters, maxItems, min, max } = getOption(field, boundsOption);
  if (maxItems !== undefined) {
    return { of: "items", min: undefined, max: BigInt(maxItems) };
  }
  if (maxCharacters !== undefined) {
    return {
      of: "characters",
      min: minCharacters === undefined ? undefined : BigInt(minCharacters),
      max: BigInt(maxCharacters),
    };
  }
  return rangeOf(field) && { of: "number", min, max };
}

function numberIn(text: string): bigint {
  return text === "2^53 - 1" ? 2n ** 53n - 1n : BigInt(text.replaceAll(",", ""));
}

/** Returns the limits that the comment names, by the usual phrases of comments. */
function documentedLimits(field: DescField): Pick<Limits, "min" | "max"> | undefined {
  const comment = commentOf(`${field.parent.typeName}.${field.name}`).replace(/\s+/g, " ");
  const range = /\b([\d,]*\d) to ([\d,]*\d)\b/.exec(comment);
  const maximum = /\bat most (2\^53 - 1|[\d,]*\d)\b(?! (?:bytes|MiB))/i.exec(comment);
  const from = /, from (\d+)\b/.exec(comment);
  if (range !== null) {
    return { min: numberIn(range[1]!), max: numberIn(range[2]!) };
  }
  return maximum === null && from === null
    ? undefined
    : {
        min: from === null ? undefined : numberIn(from[1]!),
        max: maximum === null ? undefined : numberIn(maximum[1]!),
      };
}

const nameOf = ({ parent, name }: DescField): string => `${parent.name}.${name}`;

test("declares exactly the ranges that comments of request fields name", (t) => {
  const differences = fields.flatMap(({ field }) => {
    const [declared, documented] = [declaredLimits(field), documentedLimits(field)];
    // The minimum of the type needs no declaration, and the largest exact JSON number no comment.
    const min = documented?.min === 0n ? undefined : documented?.min;
    const max = declared?.max === 2n ** 53n - 1n ? documented?.max : declared?.max;
    return declared?.min === min && max === documented?.max
      ? []
      : [
          {
            field: nameOf(field),
            declared: `${declared?.min} to ${max}`,
            documented: `${documented?.min} to ${documented?.max}`,
          },
        ];
  });
  t.deepEqual(differences, []);
});

const fileScope = fileTeardown();
let nodes: ContractNodes;
let client: RpcClient;
let control: RpcClient;

test.before(async () => {
  nodes = await startContractNodes(fileScope);
  client = connectRpc("gRPC by Connect", "HTTP/2 by prior knowledge", nodes.member);
  fileScope.teardown(() => client.close());
  const transport = nodes.member.node.control;
  control = {
    call: async (method, request) =>
      (await transport.unary(method as never, undefined, 20_000, undefined, request as never)).message,
    stream: () => {
      throw new Error("No stream is expected.");
    },
    close: () => undefined,
  };
});

/** Creates a request that is valid except for the tested field. */
function baseOf(method: DescMethod): object {
  if (method === (ControlService.method.reportSubsystem as DescMethod)) {
    return { name: "signaling", status: SubsystemStatus.READY, leaseS: 60 };
  }
  return (
    cases.find((contractCase) => (contractCase.method as DescMethod) === method && contractCase.request !== undefined)
      ?.request ?? {}
  );
}

/** Resolves to the error message; undefined if the node accepts the request. */
async function rejectionOf(method: DescMethod, request: object): Promise<string | undefined> {
  const controller = new AbortController();
  const caller = method.parent.typeName.startsWith("gatehouse.control.") ? control : client;
  try {
    if (method.methodKind === "server_streaming") {
      // A stream without messages has accepted its request.
      const timer = setTimeout(() => controller.abort(), 1_000);
      for await (const _ of caller.stream(method, create(method.input, request as never), controller.signal)) {
        break;
      }
      clearTimeout(timer);
    } else {
      await caller.call(method, create(method.input, request as never));
    }
    return undefined;
  } catch (error) {
    return controller.signal.aborted ? undefined : readFailure(error).message;
  } finally {
    controller.abort();
  }
}

const samples = [`stor-${"0".repeat(40)}`, "0".repeat(64), `0x${"0".repeat(64)}`] as const;

/** Creates a value of a size: a number, a text of that length, or a list of that many items. */
function valueOf(field: DescField, of: Limits["of"], size: bigint): unknown {
  if (of === "number") {
    return field.scalar === ScalarType.UINT64 ? size : Number(size);
  }
  if (of === "characters") {
    return "a".repeat(Number(size));
  }
  const isAddress = commentOf(`${field.parent.typeName}.${field.name}`).includes("stor-");
  const item = field.fieldKind === "list" && field.listKind === "enum" ? 1 : samples[isAddress ? 0 : 1];
  return Array.from({ length: Number(size) }, () => item);
}

function errorMessageOf(name: string, { of, min, max }: Limits, size: bigint): string {
  switch (of) {
    case "number":
      return `${name} must be a whole number from ${min ?? 0n} to ${max ?? typeMax}, not "${size}".`;
    case "characters":
      return size === 0n
        ? `${name} is required: ${min} to ${max} characters.`
        : `${name} must have ${min ?? 0n} to ${max} characters, not ${size}.`;
    case "items":
      return `${name} must have at most ${max} items, not ${size}.`;
  }
}

for (const { method, field } of fields) {
  const limits = declaredLimits(field);
  if (limits !== undefined && field.oneof === undefined) {
    test(`accepts the limits of ${method.name}.${field.name}, and rejects values beyond`, async (t) => {
      const { of, min, max } = limits;
      const ask = (size: bigint): Promise<string | undefined> =>
        rejectionOf(method, { ...baseOf(method), [field.localName]: valueOf(field, of, size) });
      for (const end of [min, max]) {
        if (end !== undefined) {
          t.notRegex((await ask(end)) ?? "", new RegExp(`\\b${field.name}\\b`), `${end}`);
        }
      }
      const beyond = [min !== undefined && min > 0n ? min - 1n : undefined, max === undefined ? undefined : max + 1n];
      for (const size of beyond) {
        if (size !== undefined) {
          t.is(await ask(size), errorMessageOf(field.name, limits, size));
        }
      }
    });
  }
}

test("does not find block 0 by number, and starts lists and events from 0 at block 1", async (t) => {
  const firstMessage = async (method: DescMethod, request: object): Promise<unknown> => {
    const controller = new AbortController();
    for await (const message of client.stream(method, create(method.input, request as never), controller.signal)) {
      controller.abort();
      return message;
    }
    return undefined;
  };
  const error = await t.throwsAsync(client.call(ChainService.method.getBlock, { number: 0n }));
  t.is(readFailure(error).reason, "NOT_FOUND");
  for (const fromNumber of [0n, 1n]) {
    const { block } = (await firstMessage(ChainService.method.listBlocks, { fromNumber })) as ListBlocksResponse;
    t.is(fromBinary(BlockHeaderSchema, block!.header).number, 1n);
  }
  const [zero, one] = [
    await firstMessage(EventService.method.watch, { fromBlock: 0n }),
    await firstMessage(EventService.method.watch, { fromBlock: 1n }),
  ];
  t.truthy(one);
  t.deepEqual(zero, one);
});
