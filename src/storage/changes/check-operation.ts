/**
 * Stateless checks of operations, beyond the limits of the proto contract. These checks are rules of the chain, so they
 * must be the same on every node.
 */
import type { ProgramData, StorageOperation } from "../../../gen/gatehouse/storage/v1/operation_pb.js";
import { RpcError } from "../../rpc/errors.js";
import { checkAccessControl } from "../programs/access-control.js";
import { checkJson } from "../documents/json-check.js";
import { typeOfJson } from "../documents/json-text.js";

/**
 * Checks an operation that already meets the limits of the proto contract. An operation that passes may still be
 * rejected because of the stored state.
 *
 * @throws RpcError INVALID_REQUEST
 */
export function checkOperation({ operation }: StorageOperation): void {
  switch (operation.case) {
    case "createProgram": {
      const { metadata, access, data } = operation.value;
      checkMetadata(metadata);
      checkAccessControl(access);
      checkData(data);
      return;
    }
    case "writeProgram":
      checkData(operation.value.data);
      return;
    case "updateAccess":
      checkAccessControl(operation.value.access);
      return;
    case "setField":
      checkJson(operation.value.value, { subject: "The value", outerLevels: 1 });
      return;
    case "setItem":
    case "appendItem":
      checkJson(operation.value.value, { subject: "The item", outerLevels: 2 });
      return;
    case "deleteField":
    case "deleteItem":
    case "deleteProgram":
      return;
    case undefined:
      throw new RpcError("INVALID_REQUEST", "The storage operation is empty; set one of its changes.");
  }
}

function checkMetadata(metadata: string | undefined): void {
  if (metadata === undefined) {
    return;
  }
  checkJson(metadata, { subject: "The metadata" });
  if (typeOfJson(metadata) !== "object") {
    throw new RpcError("INVALID_REQUEST", "The metadata must be a JSON object.");
  }
}

function checkData(data: ProgramData | undefined): void {
  if (data?.data.case === "json") {
    checkJson(data.data.value, { subject: "The document", isDocument: true });
  }
}
