/**
 * Code samples of /docs: programs that send the request of a form, and print the response. They use the standard library
 * of their language, or one command. Texts from the form become literals, so that a sample never executes them.
 */

/** Returns a literal of JavaScript, Python and Go, since the escapes of JSON are valid in all three. */
const literal = (text) => JSON.stringify(text);

/** Returns a literal of a shell. */
const shellLiteral = (text) => `'${text.replaceAll("'", "'\\''")}'`;

const shellHeaders = (headers) =>
  Object.entries(headers).map(([name, value]) => `-H ${shellLiteral(`${name}: ${value}`)}`);

/** Joins the lines of an object or a call, each with a trailing comma. */
const members = (lines) => lines.map((line) => `  ${line},`);

/**
 * Functions by language that return a program for a request: method, absolute URL, headers, body text, and whether the
 * response is a stream. `grpc` has the URL and the JSON message of the same call by gRPC.
 */
export const samples = {
  curl: ({ url, headers, body, isStream }) =>
    [
      `curl ${isStream ? "-N " : ""}${shellLiteral(url)}`,
      ...shellHeaders(headers),
      ...(body === undefined ? [] : [`--data-raw ${shellLiteral(body)}`]),
    ].join(" \\\n  "),

  JavaScript: ({ method, url, headers, body, isStream }) => {
    const options = [
      ...(body === undefined ? [] : [`method: ${literal(method)}`]),
      ...(Object.keys(headers).length === 0
        ? []
        : [
            `headers: {\n${Object.entries(headers)
              .map(([name, value]) => `    ${literal(name)}: ${literal(value)},\n`)
              .join("")}  }`,
          ]),
      ...(body === undefined ? [] : [`body: ${literal(body)}`]),
    ];
    return [
      ...(options.length === 0
        ? [`const response = await fetch(${literal(url)});`]
        : [`const response = await fetch(${literal(url)}, {`, ...members(options), `});`]),
      ...(isStream
        ? [
            `for await (const text of response.body.pipeThrough(new TextDecoderStream())) {`,
            `  console.log(text);`,
            `}`,
          ]
        : [`console.log(await response.text());`]),
    ].join("\n");
  },

  Python: ({ url, headers, body, isStream }) => {
    const lines = [
      ...(body === undefined ? [] : [`data=${literal(body)}.encode()`]),
      ...(Object.keys(headers).length === 0
        ? []
        : [
            `headers={\n${Object.entries(headers)
              .map(([name, value]) => `        ${literal(name)}: ${literal(value)},\n`)
              .join("")}    }`,
          ]),
    ];
    const isPlain = lines.length === 0;
    return [
      `from urllib.request import ${isPlain ? "urlopen" : "Request, urlopen"}`,
      ``,
      ...(isPlain ? [] : [`request = Request(`, ...[literal(url), ...lines].map((line) => `    ${line},`), `)`]),
      `with urlopen(${isPlain ? literal(url) : "request"}) as response:`,
      ...(isStream
        ? [`    for line in response:`, `        print(line.decode(), end="")`]
        : [`    print(response.read().decode())`]),
    ].join("\n");
  },

  Go: ({ method, url, headers, body }) => {
    const isPlain = body === undefined && Object.keys(headers).length === 0;
    const reader = body === undefined ? "nil" : `strings.NewReader(${literal(body)})`;
    const check = [`\tif err != nil {`, `\t\tpanic(err)`, `\t}`];
    return [
      `package main`,
      ``,
      `import (`,
      ...["io", "net/http", "os", ...(body === undefined ? [] : ["strings"])].map((name) => `\t"${name}"`),
      `)`,
      ``,
      `func main() {`,
      ...(isPlain
        ? [`\tresponse, err := http.Get(${literal(url)})`]
        : [
            `\trequest, err := http.NewRequest(${literal(method)}, ${literal(url)}, ${reader})`,
            ...check,
            ...Object.entries(headers).map(
              ([name, value]) => `\trequest.Header.Set(${literal(name)}, ${literal(value)})`,
            ),
            `\tresponse, err := http.DefaultClient.Do(request)`,
          ]),
      ...check,
      `\tdefer response.Body.Close()`,
      `\tio.Copy(os.Stdout, response.Body)`,
      `}`,
    ].join("\n");
  },

  gRPC: ({ headers, grpc: { url, message } }) =>
    [
      `buf curl --protocol grpc${url.startsWith("http:") ? " --http2-prior-knowledge" : ""}`,
      ...shellHeaders(Object.fromEntries(Object.entries(headers).filter(([name]) => name !== "Content-Type"))),
      ...(message === "{}" ? [] : [`-d ${shellLiteral(message)}`]),
      shellLiteral(url),
    ].join(" \\\n  "),
};

/** Languages by sample, for the colors. */
export const languages = { curl: "shell", gRPC: "shell" };
