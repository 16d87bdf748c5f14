/** Finds the storage program that a transaction creates or changes. */
import { hash } from "node:crypto";
import type { TransactionBody } from "../../gen/gatehouse/chain/v1/block_pb.js";
import type { StorageOperation } from "../../gen/gatehouse/storage/v1/operation_pb.js";
import { addressOf, addressText } from "./crypto/signing-payloads.js";

export function programAddress(owner: string, name: string, nonce: bigint, salt: string): string {
  return addressOf(hash("sha256", addressText(owner, name, nonce, salt), "hex"));
}

/** Returns the address of the program that an operation creates or changes; undefined if it names none. */
export function targetAddress(
  { operation }: StorageOperation,
  { sender, nonce }: Pick<TransactionBody, "sender" | "nonce">,
): string | undefined {
  switch (operation.case) {
    case undefined:
      return undefined;
    case "createProgram":
      return programAddress(sender, operation.value.programName, nonce, operation.value.salt);
    default:
      return operation.value.storageAddress;
  }
}

const prefix = "stor-";

/**
 * Returns the 20 bytes of the address of the program that a transaction creates or changes; undefined if it has none.
 */
export function targetProgram(body: Pick<TransactionBody, "operation" | "sender" | "nonce">): Buffer | undefined {
  const { operation } = body;
  const address = operation.case === "storage" ? targetAddress(operation.value, body) : undefined;
  return address === undefined ? undefined : addressBytes(address);
}

export function addressBytes(address: string): Buffer {
  return Buffer.from(address.slice(prefix.length), "hex");
}

export function addressFrom(bytes: Uint8Array): string {
  return addressOf(Buffer.from(bytes).toString("hex"));
}
