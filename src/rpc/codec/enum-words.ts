import type { DescEnum } from "@bufbuild/protobuf";

/** The lower-case words of an enumeration by number: each value's name without the enumeration's own prefix. */
export function enumWords(desc: DescEnum): Map<number, string> {
  const prefix = desc.sharedPrefix ?? "";
  return new Map(
    desc.values.map((value) => [
      value.number,
      (value.name.toLowerCase().startsWith(prefix) ? value.name.slice(prefix.length) : value.name).toLowerCase(),
    ]),
  );
}
