/** Forms of the operations on storage programs. */
import {
  type Access,
  appendItem,
  createProgram,
  deleteField,
  deleteProgram,
  jsonText,
  type JsonText,
  setField,
  updateAccess,
  writeProgram,
} from "../../../../client/src/operations.js";
import type { Operation } from "../../../../client/src/transaction.js";
import { type JsonError, parseJsonText } from "../../../base/text/parse-json.js";
import type { AccessRule } from "../responses.js";
import { h } from "../dom.js";

/** Form of an operation. */
export interface OperationForm {
  readonly element: HTMLElement;
  /**
   * Returns the operation, the expression of the client package that builds it, and the name of its function.
   *
   * @throws TypeError if an input is invalid.
   */
  readonly read: () => { readonly operation: Operation; readonly code: string; readonly builder: string };
}

/** Form for a new program. */
export function newProgramForm(): OperationForm {
  const name = input("Name");
  const data = area("Document, as JSON", '{"title": "Hello"}');
  const access = accessInputs({ mode: "public", allowed: [], blacklisted: [], groups: {} });
  return {
    element: h("div", {}, name.element, data.element, access.element),
    read() {
      const programName = required(name, "a name");
      const text = readJson(data.value(), "The document");
      const rule = access.read();
      return {
        operation: createProgram({ name: programName, data: text, access: rule }),
        builder: "createProgram",
        code: `createProgram({ name: ${quote(programName)}, data: ${jsonCode(text)}, access: ${accessCode(rule)} })`,
      };
    },
  };
}

/** Form that sets a field. */
export function setFieldForm(address: string): OperationForm {
  return fieldValueForm(address, { field: "Field", value: "Value", builder: "setField", build: setField });
}

/** Form that appends an item to a list. */
export function appendItemForm(address: string): OperationForm {
  return fieldValueForm(address, {
    field: "Field that holds a list",
    value: "Item",
    builder: "appendItem",
    build: appendItem,
  });
}

interface FieldValue {
  /** Label of the input for the name of the field. */
  readonly field: string;
  /** Label of the input for the JSON value. */
  readonly value: string;
  readonly builder: string;
  readonly build: (address: string, field: string, value: JsonText) => Operation;
}

function fieldValueForm(address: string, labels: FieldValue): OperationForm {
  const { builder, build } = labels;
  const name = input(labels.field);
  const value = area(`${labels.value}, as JSON`, '"Hello"');
  return {
    element: h("div", {}, name.element, value.element),
    read() {
      const field = required(name, "the name of a field");
      const text = readJson(value.value(), `The ${labels.value.toLowerCase()}`);
      return {
        operation: build(address, field, text),
        builder,
        code: `${builder}(${quote(address)}, ${quote(field)}, ${jsonCode(text)})`,
      };
    },
  };
}

/** Form that deletes a field. */
export function deleteFieldForm(address: string): OperationForm {
  const name = input("Field");
  return {
    element: h("div", {}, name.element),
    read() {
      const fieldName = required(name, "the name of a field");
      return {
        operation: deleteField(address, fieldName),
        builder: "deleteField",
        code: `deleteField(${quote(address)}, ${quote(fieldName)})`,
      };
    },
  };
}

/**
 * Form that replaces the complete document.
 *
 * @param present JSON text of the document; undefined for a program without one, or with binary data.
 */
export function replaceForm(address: string, present: string | undefined): OperationForm {
  const data = area("New document, as JSON", '{"title": "Hello"}', present);
  return {
    element: h("div", {}, data.element),
    read() {
      const text = readJson(data.value(), "The document");
      return {
        operation: writeProgram(address, text),
        builder: "writeProgram",
        code: `writeProgram(${quote(address)}, ${jsonCode(text)})`,
      };
    },
  };
}

/** Form that deletes a program. Its name must be typed, since a deleted program cannot be restored. */
export function deleteProgramForm(address: string, programName: string): OperationForm {
  const name = input("Name of the program, to confirm");
  const warning = "A deleted program cannot be restored, and its address stays unused. Blocks keep its history.";
  return {
    element: h("div", {}, h("p", { class: "warn" }, warning), name.element),
    read() {
      if (name.value() !== programName) {
        throw new TypeError("The entered name is not that of the program.");
      }
      return {
        operation: deleteProgram(address),
        builder: "deleteProgram",
        code: `deleteProgram(${quote(address)})`,
      };
    },
  };
}

/** Form that replaces the access rule. It starts with the present one, and keeps its groups. */
export function accessForm(address: string, present: AccessRule): OperationForm {
  const access = accessInputs(present);
  return {
    element: access.element,
    read() {
      const rule = access.read();
      return {
        operation: updateAccess(address, rule),
        builder: "updateAccess",
        code: `updateAccess(${quote(address)}, ${accessCode(rule)})`,
      };
    },
  };
}

const modes = { public: "Everyone", owner: "Only the owner", restricted: "The owner and the keys below" } as const;

function accessInputs(present: AccessRule) {
  const mode = h(
    "select",
    { "aria-label": "Read access" },
    ...Object.entries(modes).map(([value, text]) => h("option", { value, selected: value === present.mode }, text)),
  );
  const allowed = area("Keys that may read it, one per line", "", present.allowed.join("\n"));
  const blacklisted = area("Keys that may never read it, one per line", "", present.blacklisted.join("\n"));
  const showKeys = (): void => {
    allowed.element.hidden = mode.value !== "restricted";
  };
  mode.addEventListener("change", showKeys);
  showKeys();
  return {
    element: h("div", {}, h("p", {}, "Read access: ", mode), allowed.element, blacklisted.element),
    read(): Exclude<Access, string> {
      const groups = present.groups as Exclude<Access, string>["groups"];
      return {
        mode: mode.value as keyof typeof modes,
        ...(mode.value === "restricted" && { allowed: readKeys(allowed.value()) }),
        blacklisted: readKeys(blacklisted.value()),
        ...(groups !== undefined && Object.keys(groups).length > 0 && { groups }),
      };
    },
  };
}

interface Input {
  readonly element: HTMLElement;
  readonly value: () => string;
}

function input(label: string): Input {
  const element = h("input", { type: "text", autocomplete: "off", spellcheck: "false", maxlength: 1024 });
  return { element: h("label", {}, label, " ", element), value: () => element.value };
}

function area(label: string, placeholder: string, value = ""): Input {
  const element = h("textarea", {
    rows: value.length > 200 ? 12 : 4,
    placeholder,
    spellcheck: "false",
    autocapitalize: "off",
  });
  element.value = value;
  return { element: h("label", {}, label, " ", element), value: () => element.value };
}

function required({ value }: Input, name: string): string {
  if (value() === "") {
    throw new TypeError(`Enter ${name}.`);
  }
  return value();
}

function readJson(text: string, subject: string): JsonText {
  if (text.trim() === "") {
    throw new TypeError(`Enter ${subject.toLowerCase()}.`);
  }
  try {
    parseJsonText(text);
  } catch (error) {
    throw new TypeError(`${subject} ${(error as JsonError).message}.`);
  }
  return jsonText(text.trim());
}

function readKeys(text: string): string[] {
  const keys = text
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((key) => key !== "");
  const invalid = keys.find((key) => !/^0x[0-9a-f]{64}$/.test(key));
  if (invalid !== undefined) {
    throw new TypeError(`A key is 0x and 64 hex digits, and "${invalid.slice(0, 70)}" is not.`);
  }
  return keys;
}

const quote = (text: string): string => JSON.stringify(text);

function jsonCode({ text }: JsonText): string {
  return `jsonText(${quote(text)})`;
}

function accessCode(rule: Exclude<Access, string>): string {
  const { allowed = [], blacklisted = [], groups } = rule;
  return allowed.length + blacklisted.length === 0 && groups === undefined ? quote(rule.mode) : JSON.stringify(rule);
}
