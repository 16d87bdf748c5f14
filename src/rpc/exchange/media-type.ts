/** Detection of the rpc protocol from the Content-Type of a request. */

/** Protocol and encoding that a Content-Type selects. */
export interface RpcMedia {
  readonly protocol: "grpc" | "grpc-web" | "connect";
  readonly format: "proto" | "json";
  /** True if messages have envelopes; false if the body is the message. */
  readonly isStream: boolean;
  /** True if the body is base64, as in gRPC-Web text. */
  readonly isText: boolean;
}

const parsed = new Map<string, RpcMedia | undefined>();

/** Parses a Content-Type in any case, ignoring parameters; undefined if no protocol matches. */
export function readRpcMedia(contentType: string | undefined): RpcMedia | undefined {
  if (contentType === undefined) {
    return undefined;
  }
  if (parsed.has(contentType)) {
    return parsed.get(contentType);
  }
  const media = parse(contentType.split(";", 1)[0]!.trim().toLowerCase());
  // Clients use few types. The limit keeps arbitrary parameters of untrusted clients from filling memory.
  if (media !== undefined && parsed.size < 100) {
    parsed.set(contentType, media);
  }
  return media;
}

function parse(type: string): RpcMedia | undefined {
  const grpc = /^application\/grpc(-web)?(-text)?(?:\+(proto|json))?$/.exec(type);
  if (grpc !== null) {
    const [, web, text, format = "proto"] = grpc;
    const isText = text !== undefined;
    // The node serves gRPC itself only with protobuf.
    if (web === undefined ? isText || format === "json" : isText && format === "json") {
      return undefined;
    }
    return {
      protocol: web === undefined ? "grpc" : "grpc-web",
      format: format as RpcMedia["format"],
      isStream: true,
      isText,
    };
  }
  const connect = /^application\/(connect\+)?(proto|json)$/.exec(type);
  return connect === null
    ? undefined
    : {
        protocol: "connect",
        format: connect[2] as RpcMedia["format"],
        isStream: connect[1] !== undefined,
        isText: false,
      };
}
