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
  const files = new Map(withImports(services.map(({ file }) => file)).map((file) => [file.proto.name, file]));
  const registry = createRegistry(...files.values());

  return (request) => {
    switch (request.case) {
      case "listServices":
        return { case: "listServicesResponse", value: { service: services.map(({ typeName: name }) => ({ name })) } };
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
        const { value: baseTypeName } = request;
        const extensionNumber = extensionsOf(registry, baseTypeName).map(({ number }) => number);
        return registry.getMessage(baseTypeName) === undefined
          ? notFound(baseTypeName)
          : { case: "allExtensionNumbersResponse", value: { baseTypeName, extensionNumber } };
      }
      case undefined:
        return failure(Code.INVALID_ARGUMENT, "The request is empty.");
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
  const fileDescriptorProto = withImports([file]).map(({ proto }) => toBinary(FileDescriptorProtoSchema, proto));
  return { case: "fileDescriptorResponse", value: { fileDescriptorProto } };
}

/** Returns files and everything that they import, each once. */
function withImports(files: readonly DescFile[]): DescFile[] {
  const found = new Set<DescFile>();
  const collect = (file: DescFile): void => {
    if (!found.has(file)) {
      found.add(file);
      file.dependencies.forEach(collect);
    }
  };
  files.forEach(collect);
  return [...found];
}

function notFound(name: string): ReflectionResponse {
  return failure(Code.NOT_FOUND, `This node has no symbol or file ${name.slice(0, 200)}.`);
}

function failure(errorCode: Code, errorMessage: string): ReflectionResponse {
  return { case: "errorResponse", value: { errorCode, errorMessage } };
}
