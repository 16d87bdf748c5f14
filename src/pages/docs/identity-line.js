/** The line that `gatehouse identity headers` prints. */

const forms = {
  identity: /^(ed25519:)?(0x)?[0-9a-f]{64}$/i,
  timestamp: /^\d{1,16}$/,
  network: /^0x[0-9a-f]{64}$/i,
  signature: /^(0x)?[0-9a-f]{128}$/i,
};

/** Time in milliseconds for which the node accepts the headers. */
const validMs = 300_000;

/**
 * Reads the headers from the line, or from the same as JSON or as lines of headers.
 *
 * @returns the headers and the time at which they expire, or an error message. Neither for an empty text.
 */
export function readLine(text) {
  if (text.trim() === "") {
    return {};
  }
  const headers = {};
  for (const [name, form] of Object.entries(forms)) {
    const value = new RegExp(String.raw`(?<![\w-])"?${name}"?\s*:\s*"?([^\s"',}]+)`, "i").exec(text)?.[1];
    // Without a network, the headers are valid on every network.
    if (value === undefined ? name !== "network" : !form.test(value)) {
      const problem = value === undefined ? `has no header ${name}` : `has an invalid header ${name}`;
      return { error: `This text ${problem}. Paste what gatehouse identity headers prints.` };
    }
    if (value !== undefined) {
      headers[name] = value;
    }
  }
  return { headers, expiresMs: Number(headers.timestamp) + validMs };
}
