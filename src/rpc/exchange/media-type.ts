/** The protocols of rpcs by the Content-Type that a request has. */

/** What a Content-Type says of a request to an rpc. */
export interface RpcMedia {
  readonly protocol: "grpc" | "grpc-web" | "connect";
  readonly format: "proto" | "json";
  /** Messages in envelopes; otherwise the body is the message. */
  readonly isStream: boolean;
  /** Of gRPC-Web: all in base64. */
  readonly isText: boolean;
}

const known = new Map<string, RpcMedia | undefined>();

/** Reads a Content-Type, in any case and with any parameters; undefined where it is of none of the protocols. */
export function readRpcMedia(contentType: string | undefined): RpcMedia | undefined {
  if (contentType === undefined) {
    return undefined;
  }
  if (known.has(contentType)) {
    return known.get(contentType);
  }
  const media = parse(contentType.split(";", 1)[0]!.trim().toLowerCase());
  // Few are ever used; what strangers make up is not remembered.
  if (media !== undefined && known.size < 100) {
    known.set(contentType, media);
  }
  return media;
}

function parse(type: string): RpcMedia | undefined {
  const grpc = /^application\/grpc(-web)?(-text)?(?:\+(proto|json))?$/.exec(type);
  if (grpc !== null) {
    const [, web, text, format = "proto"] = grpc;
    const isText = text !== undefined;
    // gRPC itself is served with protobuf alone.
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
