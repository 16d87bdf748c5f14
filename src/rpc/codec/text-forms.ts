/** Text forms in requests (`gatehouse.annotations.v1.form`): accepted spellings, and the spelling that services get. */
import { type DescField, getOption } from "@bufbuild/protobuf";
import { form, TextForm as Form } from "../../../gen/gatehouse/annotations/v1/annotations_pb.js";
import { toBareHash, toHash, toPublicKey } from "../../base/crypto/parse-hash.js";
import { addressForm } from "../../base/crypto/signing-payloads.js";

export interface TextForm {
  /** Regular expression that matches every accepted spelling. */
  readonly pattern: string;
  /** Description of the form, to follow "must be". */
  readonly description: string;
  /** Returns the text as services expect it; undefined for a text of another form. */
  readonly read: (text: string) => string | undefined;
}

const textForms: Readonly<Record<Exclude<Form, Form.UNSPECIFIED>, TextForm>> = {
  [Form.PUBLIC_KEY]: {
    pattern: "^(ed25519:)?(0x)?[0-9a-fA-F]{64}$",
    description: "an Ed25519 public key of 64 hex digits, with or without ed25519: and 0x before them",
    read: toPublicKey,
  },
  [Form.HASH]: {
    pattern: "^(0x)?[0-9a-fA-F]{64}$",
    description: "64 hex digits, with or without 0x before them",
    read: toBareHash,
  },
  [Form.FIELD_ELEMENT]: { pattern: "^0x[0-9a-fA-F]{64}$", description: "0x and 64 hex digits", read: toHash },
  [Form.PROGRAM_ADDRESS]: {
    pattern: addressForm.source,
    description: "stor- and 40 lower-case hex digits",
    read: (text) => (addressForm.test(text) ? text : undefined),
  },
};

/** Returns the form that the contract sets for a field; undefined if any text is valid. */
export function formOf(field: DescField): TextForm | undefined {
  const declared = getOption(field, form);
  return declared === Form.UNSPECIFIED ? undefined : textForms[declared];
}
