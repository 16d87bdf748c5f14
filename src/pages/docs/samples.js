/**
 * Code samples of /docs: programs that send the request of a form. Each language uses its standard library only. Texts
 * from the form become literals, so that a sample never executes them.
 */

/** Returns a literal of JavaScript, Python and Go, since the escapes of JSON are valid in all three. */
const literal = (text) => JSON.stringify(text);

/** Returns a literal of a shell. */
const shellLiteral = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** Functions by language that return a program for a request: method, absolute URL, headers and body text. */
export const samples = {
  curl: ({ method, url, headers, body }) =>
    [
      `curl -X ${method} ${shellLiteral(url)}`,
      ...Object.entries(headers).map(([name, value]) => `-H ${shellLiteral(`${name}: ${value}`)}`),
      ...(body === undefined ? [] : [`--data-raw ${shellLiteral(body)}`]),
    ].join(" \\\n  "),

  JavaScript: ({ method, url, headers, body }) =>
    [
      `const response = await fetch(${literal(url)}, {`,
      `  method: ${literal(method)},`,
      `  headers: {`,
      ...Object.entries(headers).map(([name, value]) => `    ${literal(name)}: ${literal(value)},`),
      `  },`,
      ...(body === undefined ? [] : [`  body: ${literal(body)},`]),
      `});`,
      `console.log(response.status, await response.text());`,
    ].join("\n"),

  Python: ({ method, url, headers, body }) =>
    [
      `from urllib.error import HTTPError`,
      `from urllib.request import Request, urlopen`,
      ``,
      `request = Request(${literal(url)}, method=${literal(method)})`,
      ...Object.entries(headers).map(([name, value]) => `request.add_header(${literal(name)}, ${literal(value)})`),
      ...(body === undefined ? [] : [`request.data = ${literal(body)}.encode()`]),
      `try:`,
      `    response = urlopen(request)`,
      `except HTTPError as error:`,
      `    response = error`,
      `print(response.status, response.read().decode())`,
    ].join("\n"),

  Go: ({ method, url, headers, body = "" }) =>
    [
      `package main`,
      ``,
      `import (`,
      ...["fmt", "io", "log", "net/http", "strings"].map((name) => `\t"${name}"`),
      `)`,
      ``,
      `func main() {`,
      `\trequest, err := http.NewRequest(${literal(method)}, ${literal(url)}, strings.NewReader(${literal(body)}))`,
      `\tif err != nil {`,
      `\t\tlog.Fatal(err)`,
      `\t}`,
      ...Object.entries(headers).map(([name, value]) => `\trequest.Header.Set(${literal(name)}, ${literal(value)})`),
      `\tresponse, err := http.DefaultClient.Do(request)`,
      `\tif err != nil {`,
      `\t\tlog.Fatal(err)`,
      `\t}`,
      `\tdefer response.Body.Close()`,
      `\ttext, err := io.ReadAll(response.Body)`,
      `\tif err != nil {`,
      `\t\tlog.Fatal(err)`,
      `\t}`,
      `\tfmt.Println(response.StatusCode, string(text))`,
      `}`,
    ].join("\n"),
};
