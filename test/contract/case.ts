/** What a contract case is: one request, over plain HTTP and as a message. */
import type { DescMessage, DescMethodUnary, MessageInitShape } from "@bufbuild/protobuf";

/** Who signs a request; nobody does otherwise. */
export type CallerName = "owner" | "friend" | "member" | "enemy";

/** The nodes that cases run against. */
export type NodeName = "member" | "newcomer";

/** One request of the contract. */
export interface ContractCase {
  readonly title: string;
  /** `member` has peers, a genesis and data; `newcomer` has nothing, so it is dormant. Both have TLSNOTARY_ENABLED. */
  readonly node: NodeName;
  readonly method: DescMethodUnary;
  /** The request as a message; undefined when no message says what the plain request says, such as `limit=abc`. */
  readonly request: object | undefined;
  readonly path: string;
  readonly httpMethod: "GET" | "POST";
  readonly body: string | undefined;
  readonly caller: CallerName | undefined;
}

/** Declares a case. */
export function contractCase<I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  path: string,
  title: string,
  request: MessageInitShape<I> | undefined,
  more: { readonly node?: NodeName; readonly post?: string; readonly caller?: CallerName } = {},
): ContractCase {
  return {
    title,
    node: more.node ?? "member",
    method: method as unknown as ContractCase["method"],
    request,
    path,
    httpMethod: more.post === undefined ? "GET" : "POST",
    body: more.post,
    caller: more.caller,
  };
}
