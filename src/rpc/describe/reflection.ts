/**
 * Server reflection (`grpc.reflection.v1` and `v1alpha`): lists services and messages for clients without proto files,
 * including the reflection services. All data comes from the descriptors of the served services.
 */
import {
  createRegistry,
  type DescFile,
  type DescMessage,
  type DescService,
  type MessageInitShape,
  type Registry,
  toBinary,
} from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code } from "../../../gen/google/rpc/code_pb.js";
import {
  ServerReflection,
  type ServerReflectionRequest,
  type ServerReflectionResponseSchema,
} from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "../../../gen/grpc/reflection/v1alpha/reflection_pb.js";
import { type Implementation, serve, type ServedService } from "../service.js";

type ReflectionResponse = NonNullable<MessageInitShape<typeof ServerReflectionResponseSchema>["messageResponse"]>;

/** Creates the two reflection services for the given services and for themselves. */
export function reflectionServices(services: readonly DescService[]): ServedService[] {
  const reflect = createReflection([...services, ServerReflection, ServerReflectionAlpha]);
  const implementation: Implementation<typeof ServerReflection> = {
    async *serverReflectionInfo(requests) {
      for await (const request of requests) {
        yield { validHost: request.host, messageResponse: reflect(request.messageRequest) };
      }
    },
  };
  return [
    serve(ServerReflection, implementation),
    // The two versions differ only in name.
    serve(ServerReflectionAlpha, implementation as unknown as Implementation<typeof ServerReflectionAlpha>),
  ];
}

function createReflection(
  services: readonly DescService[],
): (r: ServerReflectionRequest["messageRequest"]) => ReflectionResponse {
  const files = new Map<string, DescFile>();
  const collect = (file: DescFile): void => {
    if (!files.has(file.proto.name)) {
      files.set(file.proto.name, file);
      file.dependencies.forEach(collect);
    }
  };
  services.forEach(({ file }) => collect(file));
  const registry = createRegistry(...files.values());

  return (request) => {
    switch (request.case) {
      case "listServices":
        return {
          case: "listServicesResponse",
          value: { service: services.map(({ typeName }) => ({ name: typeName })) },
        };
      case "fileByFilename":
        return fileResponse(files.get(request.value), request.value);
      case "fileContainingSymbol":
        return fileResponse(fileOfSymbol(registry, request.value), request.value);
      case "fileContainingExtension": {
        const { containingType, extensionNumber } = request.value;
        const extension = extensionsOf(registry, containingType).find(({ number }) => number === extensionNumber);
        return fileResponse(extension?.file, `${containingType} ${extensionNumber}`);
      }
      case "allExtensionNumbersOfType": {
        const extendee = registry.getMessage(request.value);
        return extendee === undefined
          ? notFound(request.value)
          : {
              case: "allExtensionNumbersResponse",
              value: {
                baseTypeName: extendee.typeName,
                extensionNumber: extensionsOf(registry, extendee.typeName).map(({ number }) => number),
              },
            };
      }
      case undefined:
        return {
          case: "errorResponse",
          value: { errorCode: Code.INVALID_ARGUMENT, errorMessage: "The request is empty." },
        };
    }
  };
}

/** Finds the file of a type or a service, or of a method, field or enum value within. */
function fileOfSymbol(registry: Registry, symbol: string): DescFile | undefined {
  const found = registry.get(symbol) ?? registry.get(symbol.slice(0, Math.max(0, symbol.lastIndexOf("."))));
  return found?.file;
}

function extensionsOf(registry: Registry, typeName: DescMessage["typeName"]) {
  return [...registry]
    .filter((type) => type.kind === "extension")
    .filter(({ extendee }) => extendee.typeName === typeName);
}

/** Returns the file and all its imports, which clients need to use the file. */
function fileResponse(file: DescFile | undefined, name: string): ReflectionResponse {
  if (file === undefined) {
    return notFound(name);
  }
  const closure = new Set<DescFile>();
  const collect = (current: DescFile): void => {
    if (!closure.has(current)) {
      closure.add(current);
      current.dependencies.forEach(collect);
    }
  };
  collect(file);
  return {
    case: "fileDescriptorResponse",
    value: { fileDescriptorProto: [...closure].map(({ proto }) => toBinary(FileDescriptorProtoSchema, proto)) },
  };
}

function notFound(name: string): ReflectionResponse {
  return {
    case: "errorResponse",
    value: { errorCode: Code.NOT_FOUND, errorMessage: `This node has no symbol or file ${name.slice(0, 200)}.` },
  };
}
