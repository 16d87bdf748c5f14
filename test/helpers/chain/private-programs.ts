/** Private programs full of markers, with valid and invalid operations of every kind on them. */
import { AccessMode, AccessPermission } from "../../../gen/gatehouse/storage/v1/storage_pb.js";
import { programAddress } from "../../../src/storage/changes/write.js";
import type { TestKey } from "./keys.js";
import type { Markers } from "../process/markers.js";
import type { Operation } from "./transactions.js";

/** An operation to submit. */
export interface Step {
  readonly sender: TestKey;
  readonly nonce: number;
  readonly operation: Operation;
  /** True if it is rejected, on submission or during block production. */
  readonly isRejected: boolean;
}

/** The keys of the test. */
export interface People {
  readonly owner: TestKey;
  /** May read one of the programs. */
  readonly reader: TestKey;
  /** In a group that reads and writes another one. */
  readonly member: TestKey;
  readonly stranger: TestKey;
}

/** The steps, and the addresses of the programs. */
export type PrivatePrograms = ReturnType<typeof privatePrograms>;

type Access = NonNullable<Extract<Operation, { case: "createProgram" }>["value"]["access"]>;

export function privatePrograms({ owner, reader, member, stranger }: People, markers: Markers, firstNonce = 1) {
  const steps: Step[] = [];
  const addresses: string[] = [];
  /** Name of a public program. */
  const publicText = "everybody may read this";
  let nonce = firstNonce;
  const add = (operation: Operation, { sender = owner, isRejected = false } = {}): void =>
    void steps.push({ sender, nonce: nonce++, operation, isRejected });

  function create(name: string, access: Access | undefined, data: { json: string } | { binary: Uint8Array }): string {
    const programName = markers.make(`the name of ${name}`);
    const salt = markers.make(`the salt of ${name}`);
    const address = programAddress(owner.publicKey, programName, BigInt(nonce), salt);
    addresses.push(address);
    const metadata = JSON.stringify({
      [markers.make(`a member of ${name}'s metadata`)]: markers.make(`${name}'s metadata`),
    });
    const kind =
      "json" in data ? { case: "json" as const, value: data.json } : { case: "binary" as const, value: data.binary };
    add({
      case: "createProgram",
      value: { programName, salt, metadata, data: { data: kind }, ...(access && { access }) },
    });
    return address;
  }

  const documentOf = (name: string): { json: string; field: string; list: string } => {
    const [field, list] = [markers.make(`a field of ${name}`), markers.make(`a list of ${name}`)];
    const value = { [field]: markers.make(`a value of ${name}`), [list]: [markers.make(`an item of ${name}`), 2] };
    return { json: JSON.stringify(value), field, list };
  };
  const value = (name: string): string => JSON.stringify(`"\\${markers.make(name)}`);

  /** Adds all valid changes of a document, and all invalid ones. */
  function change(
    name: string,
    storageAddress: string,
    { field, list }: ReturnType<typeof documentOf>,
    sender: TestKey,
  ): void {
    const at = { storageAddress };
    add({ case: "setField", value: { ...at, field, value: value(`a changed value of ${name}`) } }, { sender });
    add({ case: "setField", value: { ...at, field: markers.make(`a new field of ${name}`), value: "1" } }, { sender });
    add({ case: "appendItem", value: { ...at, field: list, value: value(`a further item of ${name}`) } }, { sender });
    add(
      { case: "setItem", value: { ...at, field: list, index: 1, value: value(`a changed item of ${name}`) } },
      { sender },
    );
    add({ case: "deleteItem", value: { ...at, field: list, index: 0 } }, { sender });
    const wrong = { sender, isRejected: true };
    const twice = JSON.stringify(markers.make(`a name that ${name} would have twice`));
    add({ case: "setItem", value: { ...at, field: list, index: 9, value: value(`an item beyond ${name}`) } }, wrong);
    add({ case: "appendItem", value: { ...at, field, value: "1" } }, wrong);
    add({ case: "appendItem", value: { ...at, field: markers.make(`no field of ${name}`), value: "1" } }, wrong);
    add({ case: "deleteField", value: { ...at, field: markers.make(`no field of ${name} either`) } }, wrong);
    add({ case: "setField", value: { ...at, field, value: `{${twice}:1,${twice}:2}` } }, wrong);
    add({ case: "setField", value: { ...at, field, value: `{${markers.make(`what is no JSON in ${name}`)}` } }, wrong);
    add({ case: "writeProgram", value: { ...at, data: { data: { case: "json", value: `[${twice}` } } } }, wrong);
    add({ case: "deleteField", value: { ...at, field } }, { sender });
    add({ case: "setField", value: { ...at, field, value: "1" } }, { sender: stranger, isRejected: true });
  }

  const mine = documentOf("the owner's program");
  change("the owner's program", create("the owner's program", undefined, mine), mine, owner);

  const theirs = documentOf("the group's program");
  const group = markers.make("the name of a group");
  const groups = {
    [group]: { members: [member.publicKey], permissions: [AccessPermission.READ, AccessPermission.WRITE] },
  };
  const restricted = { mode: AccessMode.RESTRICTED, groups };
  change("the group's program", create("the group's program", restricted, theirs), theirs, member);

  create(
    "the reader's program",
    { mode: AccessMode.RESTRICTED, allowed: [reader.publicKey] },
    documentOf("the reader's program"),
  );
  const binary = create("the bytes", undefined, {
    binary: Buffer.from(`\0\xff${markers.make("some bytes")}\xfe`, "latin1"),
  });
  add({
    case: "writeProgram",
    value: {
      storageAddress: binary,
      data: { data: { case: "binary", value: Buffer.from(markers.make("other bytes")) } },
    },
  });

  const everybody = { mode: AccessMode.PUBLIC };
  const closed = create("what was public", everybody, documentOf("what was public"));
  add({ case: "updateAccess", value: { storageAddress: closed, access: { mode: AccessMode.OWNER } } });
  for (const [name, access] of [
    ["what was deleted", everybody],
    ["what was private and deleted", undefined],
  ] as const) {
    add({ case: "deleteProgram", value: { storageAddress: create(name, access, documentOf(name)) } });
  }
  const shown = { programName: publicText, access: everybody, data: { data: { case: "json", value: "1" } } } as const;
  add({ case: "createProgram", value: shown });
  return { steps, addresses, publicText };
}
