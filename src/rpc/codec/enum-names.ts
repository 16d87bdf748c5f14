import type { DescEnum } from "@bufbuild/protobuf";

/** Returns the lowercase names of an enum by number: the names of the values without the enum's own prefix. */
export function enumNames(desc: DescEnum): Map<number, string> {
  const prefix = desc.sharedPrefix ?? "";
  return new Map(
    desc.values.map((value) => [
      value.number,
      (value.name.toLowerCase().startsWith(prefix) ? value.name.slice(prefix.length) : value.name).toLowerCase(),
    ]),
  );
}
