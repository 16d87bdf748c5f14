/** The rpcs by the names that callers without generated code use: `storage.getProgram`. */
import type { DescField, DescService } from "@bufbuild/protobuf";
import { readHttpRule } from "./http-rule.js";
import type { ServedMethod, ServedService } from "./service.js";

/** An rpc that takes one message and gives one. */
export interface NamedMethod {
  /** `<area>.<method>`. */
  readonly name: string;
  readonly served: ServedMethod;
  /** The field of the response that is the whole answer, as it is over plain HTTP; undefined where the response is. */
  readonly responseField: DescField | undefined;
}

/** The area of a service: `storage` of `gatehouse.storage.v1.StorageService`. */
export function areaOf({ typeName }: DescService): string {
  return typeName.split(".").at(-3) ?? typeName;
}

/** Names the unary rpcs of our own services, in their order. */
export function nameMethods(services: readonly ServedService[]): NamedMethod[] {
  return services
    .filter(({ desc }) => desc.typeName.startsWith("gatehouse."))
    .flatMap(({ desc, methods }) =>
      methods
        .filter((served) => served.desc.methodKind === "unary")
        .map((served) => ({
          name: `${areaOf(desc)}.${served.desc.localName}`,
          served,
          responseField: readHttpRule(served.desc)?.responseField,
        })),
    );
}
