/** Shows the steps of a verification: each check with its result, and the limits of the verification. */
import { bytesToHex } from "../../../../client/src/bytes.js";
import { readHeader } from "../../../../client/src/proof/headers.js";
import { ProofError } from "../../../../client/src/proof/proof-error.js";
import { copyable } from "../copy.js";
import { type Content, h } from "../dom.js";
import { blockLink, code, messageOf, ownerLink, shortHash, untrusted } from "../parts.js";
import { maxAgeS, type Proofs, type Trace } from "./proofs.js";
import { ago, counted, truncate } from "../format.js";

/** Step of a verification. */
export interface Step {
  readonly name: string;
  /** Undefined if the check stopped before this step. */
  readonly isPassed: boolean | undefined;
  readonly details: readonly Content[];
}

/** Mark, CSS class and name for screen readers of each result. */
const marks = { true: ["✓", "good", "passed"], false: ["✗", "bad", "failed"], undefined: ["–", "dim", "not checked"] };

/** Returns the steps as an ordered list. */
export function stepList(steps: readonly Step[]): HTMLElement {
  return h(
    "ol",
    { class: "steps", "aria-label": "Steps" },
    ...steps.map(({ name, isPassed, details }) => {
      const [mark, className, label] = marks[`${isPassed}`];
      return h(
        "li",
        {},
        h("span", { class: className, role: "img", "aria-label": label }, mark),
        h("strong", {}, name),
        h("span", {}, ...details),
      );
    }),
  );
}

/** Names of the steps, in the order in which `checkProof` and the page check them. */
const checkOrder = ["Authority", "Signature", "Header", "Age", "State root", "Document", "Field", "This page"] as const;
type StepName = (typeof checkOrder)[number];

/** Returns the steps of a proof in display order, from the value on the page to the authority and the age. */
export function stepsOf(trace: Trace, error: unknown, isPinned: boolean): Step[] {
  const failed = error === undefined ? undefined : failedStep(trace, error);
  const details = detailsOf(trace, isPinned);
  const names: readonly StepName[] = [
    "This page",
    ...((trace.question.fields?.length ?? 0) > 0 ? (["Field"] as const) : []),
    ...(trace.question.storageAddress === undefined ? [] : (["Document"] as const)),
    "State root",
    "Header",
    "Signature",
    "Authority",
    "Age",
  ];
  const stop = failed === undefined ? checkOrder.length : checkOrder.indexOf(failed);
  return names.map((name) => {
    const rank = checkOrder.indexOf(name);
    const isFailed = name === failed;
    return {
      name,
      isPassed: isFailed ? false : rank < stop ? true : undefined,
      details: isFailed ? [messageOf(error)] : details[name],
    };
  });
}

/** Returns the name of the step that failed, from the progress of the trace and the flaw of the error. */
function failedStep({ network, response, state, question }: Trace, error: unknown): StepName {
  if (state !== undefined) {
    return "This page";
  }
  if (!(error instanceof ProofError) || network === undefined || response === undefined) {
    return "Authority";
  }
  switch (error.flaw) {
    case "signature":
      return isByAuthority(response.header, network.authorities) ? "Signature" : "Authority";
    case "network":
    case "rollback":
    case "fork":
    case "malformed":
      return "Header";
    case "age":
      return "Age";
    case "value":
      return "Document";
    default:
      return question.storageAddress !== undefined && /the field/.test(error.message) ? "Field" : "State root";
  }
}

/** Returns true if an authority of the network is the proposer of a header. */
function isByAuthority(header: Uint8Array, authorities: ReadonlySet<string>): boolean {
  try {
    return authorities.has(readHeader(header).proposer);
  } catch {
    return false;
  }
}

/** Describes the result of each step. */
function detailsOf({ network, response, state, question }: Trace, isPinned: boolean): Record<StepName, Content[]> {
  const program = response?.program;
  const present = program?.state.case === "program" ? program.state.value : undefined;
  const object = present?.document.case === "object" ? present.document.value : undefined;
  const path =
    program?.path ?? response?.nullifiers[0]?.path ?? response?.senders[0]?.path ?? response?.commitments?.path;
  const field = object?.fields[0];
  const signed = state?.block.signed;
  const stateRoot = state && `0x${bytesToHex(state.block.stateRoot)}`;
  return {
    "This page": ["The value on this page is the proved value."],
    Field:
      field === undefined
        ? ["The document has no field of this name."]
        : [
            untrusted(JSON.stringify(field.name), 60),
            " is ",
            field.field === undefined ? "absent" : code(truncate(field.field.value, 100)),
            `; a path of ${hashes(field.path?.siblings)} leads from it to the root of the fields `,
            ...(object === undefined ? [] : [shortHash(`0x${bytesToHex(object.fieldsRoot)}`)]),
          ],
    Document: [
      present === undefined
        ? "The address has no program."
        : question.withDocument === true
          ? "The complete text, the owner, the name and the rule hash to the program’s entry."
          : "The root of the fields, the owner, the name and the rule hash to the program’s entry.",
    ],
    "State root": [
      `A path of ${hashes(path?.siblings)} leads from the entry to `,
      ...(stateRoot === undefined ? ["the root of the state"] : [shortHash(stateRoot)]),
    ],
    Header:
      state === undefined
        ? ["The header has the root of the state, and names this network."]
        : [
            "Block ",
            blockLink(Number(state.block.number)),
            " has this root, and names this network; its hash is ",
            shortHash(state.block.hash),
          ],
    Signature:
      signed === undefined
        ? ["Block 0 has no signature: the hash of the genesis identifies it."]
        : [
            `Ed25519, over the ${counted(signed.header.length, "byte")} of the header: `,
            shortHash(`0x${bytesToHex(signed.signature)}`),
          ],
    Authority: [
      ...(signed === undefined ? [] : [ownerLink(readHeader(signed.header).proposer), " is in the list of "]),
      `${counted(network?.authorities.size ?? 0, "authority", "authorities")} of the genesis `,
      ...(network === undefined ? [] : [shortHash(network.genesisHash)]),
      isPinned ? ", which you entered" : ", which this node named: enter a hash from elsewhere to pin it",
    ],
    Age: [
      state === undefined
        ? `An authority must have signed in the last ${maxAgeS} s that the block is the latest.`
        : `An authority signed ${ago(Number(state.block.saidMs))} that the block is the latest; the limit is ${maxAgeS} s.`,
    ],
  };
}

/** Counts the siblings of a path; each is 32 bytes. */
const hashes = (siblings: Uint8Array | undefined): string => counted((siblings?.length ?? 0) / 32, "hash", "hashes");

/**
 * Explains why a check in this page proves less than a check outside of it, and shows a command for the latter.
 *
 * @param command with GENESIS in place of the hash of the genesis; undefined if there is no command.
 * @param genesisHash from the node, if it is known.
 */
export function unprovedNotice(
  { trusted }: Pick<Proofs, "trusted">,
  command?: string,
  genesisHash = "GENESIS",
): HTMLElement {
  const completed = command?.replaceAll("GENESIS", trusted ?? genesisHash);
  return h(
    "div",
    {},
    h(
      "p",
      {},
      h("strong", {}, "Not proved: "),
      "that this page is honest. It comes from the node that you check, which could send one that shows ✓ for anything. ",
      trusted === undefined ? "The node also named the genesis: use one from another source. " : "",
      "The time is from the clock of this computer. ",
      completed === undefined
        ? "Check with the gatehouse command or the client package from another source."
        : "On a computer that you trust, this command proves the same:",
    ),
    ...(completed === undefined ? [] : [copyable(h("code", {}, completed), completed, "the command")]),
  );
}

/**
 * Returns the commands that request and verify the same proof. Returns undefined if there are none, or if the name of
 * the field has control characters, which a terminal could interpret.
 */
export function commandFor(
  { storageAddress, fields, nullifiers, withCommitments, senders }: Trace["question"],
  url: string,
): string | undefined {
  const options = `--node ${url} --verify GENESIS --save proof.json`;
  const verify = " && gatehouse verify proof.json --genesis GENESIS";
  const field = fields?.[0];
  if (senders !== undefined || (field !== undefined && /\p{C}/u.test(field))) {
    return undefined;
  }
  if (storageAddress !== undefined) {
    return `gatehouse storage get ${options} -- ${storageAddress}${field === undefined ? "" : ` ${quoted(field)}`}${verify}`;
  }
  if (nullifiers?.[0] !== undefined) {
    return `gatehouse zk nullifier ${options} ${nullifiers[0]}${verify}`;
  }
  return withCommitments === true ? `gatehouse zk root ${options}${verify}` : undefined;
}

/** Quotes an argument for a POSIX shell. */
const quoted = (argument: string): string => `'${argument.replaceAll("'", `'\\''`)}'`;
