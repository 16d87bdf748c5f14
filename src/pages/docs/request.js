/** Requests for the values in a form of /docs. */

/**
 * Returns method, absolute URL, headers and body text. A value `.` or `..` in the path is called by JSON-RPC, since
 * URLs resolve such segments and would name another route.
 *
 * @param base URL of the node, without a slash at the end.
 * @param values list of `{ name, in, value }`, in the order of the form. `in` is path, query or body.
 */
export function createRequest({ method, path, rpc }, base, values, headers) {
  const given = values.filter(({ value }) => value !== "");
  if (given.some((one) => one.in === "path" && /^\.\.?$/.test(one.value))) {
    const params = Object.fromEntries(given.map(({ name, value }) => [name, value]));
    return {
      ...{ method: "POST", url: `${base}/`, headers: { ...headers, "Content-Type": "application/json" } },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: rpc, params }),
    };
  }
  const body = values.find((one) => one.in === "body")?.value;
  const query = new URLSearchParams(given.filter((one) => one.in === "query").map(({ name, value }) => [name, value]));
  const route = given
    .filter((one) => one.in === "path")
    .reduce((found, { name, value }) => found.replace(`{${name}}`, encodeURIComponent(value)), path);
  return {
    ...{ method, url: `${base}${route}${query.size === 0 ? "" : `?${query}`}`, body },
    headers: { ...headers, ...(body !== undefined && { "Content-Type": "application/json" }) },
  };
}

/**
 * Returns the same call by gRPC: its URL, and its message as JSON text.
 *
 * @param values as of {@link createRequest}; `type` is the type of the value.
 */
export function createGrpcCall(name, base, values) {
  const members = values
    .filter(({ value, in: place }) => value !== "" && place !== "body")
    .map(({ name: member, value, type }) => `${JSON.stringify(member)}: ${jsonOf(value, type)}`);
  const body = values.find((one) => one.in === "body")?.value;
  return { url: `${base}/${name}`, message: body ?? (members.length === 0 ? "{}" : `{${members.join(", ")}}`) };
}

/** Returns the JSON text of a value. Digits are kept as they are, since JavaScript would lose some. */
function jsonOf(value, type) {
  if (type === "list") {
    return `[${JSON.stringify(value)}]`;
  }
  const isLiteral = /integer|number/.test(type)
    ? /^(0|[1-9]\d*)$/.test(value)
    : type === "boolean" && /^(true|false)$/.test(value);
  return isLiteral ? value : JSON.stringify(value);
}
