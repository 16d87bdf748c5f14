/** Generates examples/vectors/addresses.json: addresses of programs, with the values that determine them. */
import { programAddress } from "../../../src/storage/changes/write.js";
import { alice, bob } from "./keys.js";

/** Values that determine an address. */
export interface AddressParts {
  readonly owner: string;
  readonly programName: string;
  readonly nonce: bigint;
  readonly salt: string;
}

const of = (programName: string, salt = "", nonce = 1n, { publicKey: owner } = alice): AddressParts => ({
  owner,
  programName,
  nonce,
  salt,
});

const programs: Readonly<Record<string, AddressParts>> = {
  "an ordinary one": of("notes"),
  "with a salt": of("notes", "pepper"),
  "of another owner": of("notes", "", 1n, bob),
  "the time as the nonce": of("notes", "", 1_767_225_600_000n),
  "the largest nonce": of("notes", "", 9_007_199_254_740_991n),
  "a colon in the name, which is not escaped": of("a:5", "x", 7n),
  "quotes, backslashes, percent and lines, which are not escaped either": of('"a" \\n %3A\r\n\tb', "'\\'"),
  "spaces at both ends, which stay": of(" notes ", " "),
  "UTF-8: an accent in one code point": of("caf\u00e9"),
  "UTF-8: the same accent as a code point of its own, which is another name": of("cafe\u0301"),
  "UTF-8: beyond the basic plane": of("\u{1f3f0} \u65e5\u672c\u8a9e", "\u{1d11e}"),
};

export function addressVectors(): string {
  return JSON.stringify({
    addresses: Object.entries(programs).map(([name, { owner, programName, nonce, salt }]) => ({
      name,
      owner,
      programName,
      nonce: String(nonce),
      salt,
      address: programAddress(owner, programName, nonce, salt),
    })),
  });
}
