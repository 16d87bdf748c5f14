/** Decodes a transaction that the reader pastes, and checks it against the node's chain. The transaction is not sent. */
import { decodeBase64, sha256Hex } from "../../../../client/src/bytes.js";
import { isSigned } from "../../../../client/src/proof/hashing.js";
import { transactionPrefix } from "../../../base/crypto/signing-payloads.js";
import { parseJsonText } from "../../../base/text/parse-json.js";
import type { HeadResponse, SenderResponse, TransactionBody } from "../responses.js";
import { h, setText } from "../dom.js";
import { nodeNowMs } from "../format.js";
import type { ExploredNode } from "../node.js";
import { bodyFacts, operationDetails } from "../operation-text.js";
import { facts, messageOf, note, section, transactionLink } from "../parts.js";
import { type Step, stepList } from "../proof/verify-steps.js";
import type { View, ViewContext } from "../view.js";
import { decodeBody } from "../write/draft.js";

/** Transaction that was pasted. */
interface Pasted {
  readonly bytes: Uint8Array;
  readonly body: TransactionBody;
  /** Undefined if only the body was pasted. */
  readonly signature: Uint8Array | undefined;
}

interface Encoded {
  readonly body: string;
  readonly signature?: string;
}

export function viewDecode({ node }: ViewContext): Promise<View> {
  const input = h("textarea", { rows: 6, spellcheck: "false", autocomplete: "off", required: true });
  const problem = h("p", { class: "bad", role: "alert" });
  const result = h("div", { role: "status" });
  const label = h("label", {}, "Transaction as the JSON that is submitted, or its body in base64", input);
  const form = h("form", { class: "write" }, label, h("p", {}, h("button", {}, "Decode")), problem);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    setText(problem, "");
    result.replaceChildren();
    decode(node, input.value).then(
      (contents) => result.replaceChildren(...contents),
      (error: unknown) => setText(problem, messageOf(error)),
    );
  });
  return Promise.resolve({ title: "Decode a transaction", contents: [form, result] });
}

async function decode(node: ExploredNode, text: string): Promise<Node[]> {
  const { bytes, body, signature } = readPasted(text.trim());
  return [
    section(
      "Operation",
      operationDetails(body),
      facts({ Hash: transactionLink(`0x${sha256Hex(bytes)}`), ...bodyFacts(body) }),
    ),
    section("Checks", stepList(await checks(node, { bytes, body, signature })), note("The transaction was not sent.")),
  ];
}

async function checks(node: ExploredNode, { bytes, body, signature }: Pasted): Promise<Step[]> {
  const [{ genesisHash }, { nonce }] = await Promise.all([
    node.fetchJson<HeadResponse>("chain/head"),
    node.fetchJson<SenderResponse>(`chain/senders/${body.sender}`),
  ]);
  const isValid = signature && isSigned(body.sender, transactionPrefix, bytes, signature);
  const isHere = body.network === genesisHash;
  const isOpen = body.expiresMs > nodeNowMs();
  const signed =
    isValid === undefined ? "The pasted text has no signature." : isValid ? "By the sender." : "Not by the sender.";
  return [
    { name: "Signature", isPassed: isValid, details: [signed] },
    {
      name: "Network",
      isPassed: isHere,
      details: [isHere ? "The network of this node." : "Not the network of this node."],
    },
    {
      name: "Expiry",
      isPassed: isOpen,
      details: [isOpen ? "Still valid." : "Expired: no later block may include it."],
    },
    { name: "Nonce", isPassed: body.nonce > nonce, details: [`The last nonce of the sender is ${nonce}.`] },
  ];
}

/** Parses the JSON of a signed transaction, or the base64 of a body. Throws a TypeError for another text. */
function readPasted(text: string): Pasted {
  try {
    const parsed = (text.startsWith("{")
      ? parseJsonText(text)
      : { body: text.replace(/\s/g, "") }) as object as Encoded & {
      transaction?: Encoded;
    };
    const { body: encoded, signature = "" } = parsed.transaction ?? parsed;
    const [bytes, signed] = [encoded, signature].map(decodeBase64);
    if (bytes !== undefined && signed !== undefined) {
      const body = decodeBody(bytes);
      if (/^0x[0-9a-f]{64}$/.test(body.sender)) {
        return { bytes, body, signature: signed.length === 0 ? undefined : signed };
      }
    }
  } catch {
    // The error below names the forms of all texts that can be decoded.
  }
  throw new TypeError("This is neither the JSON of a transaction nor the base64 of its body.");
}
