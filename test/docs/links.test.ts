/** Links between documents, and tables that repeat declarations of the code. */
import { getOption } from "@bufbuild/protobuf";
import test from "ava";
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { probe } from "../../gen/gatehouse/annotations/v1/annotations_pb.js";
import { configFile, options } from "../../src/config/options.js";
import { readHttpRoutes } from "../../src/rpc/http/http-rule.js";
import { nodeCallMessages } from "../../src/rpc/node-call/node-call.js";
import { areaOf } from "../../src/rpc/json-rpc/named-methods.js";
import { contractServices } from "../helpers/process/contract-files.js";
import { anchorsOf, codeOf, linksOf, listDocuments } from "./markdown.js";

/** Texts of all documents by path. */
const documents = new Map<string, string>();
for (const path of await listDocuments()) {
  documents.set(path, await readFile(path, "utf8"));
}
const interfacePage = documents.get("docs/interface.md")!;
const services = (await contractServices()).filter(({ typeName }) => !typeName.startsWith("gatehouse.testing."));

/** Returns the reason that a link is broken; undefined if it works or leads to another host. */
async function linkError(document: string, url: string): Promise<string | undefined> {
  if (/^[a-z]+:/.test(url)) {
    return undefined;
  }
  const [path = "", anchor] = decodeURI(url).split("#");
  const target = path === "" ? document : join(dirname(document), path);
  if (path.startsWith("/") || relative("", resolve(target)).startsWith("..")) {
    return "leads out of the repository";
  }
  if (!existsSync(target)) {
    return "leads to no file";
  }
  if (anchor === undefined) {
    return undefined;
  }
  if (target.endsWith(".md")) {
    return anchorsOf(await readFile(target, "utf8")).has(anchor) ? undefined : "leads to no heading";
  }
  const lines = (await readFile(target, "utf8")).split("\n").length;
  return /^L\d+$/.test(anchor) && Number(anchor.slice(1)) <= lines ? undefined : "leads to no line";
}

test("every link of a document works", async (t) => {
  for (const [document, content] of documents) {
    for (const { text: url, line } of linksOf(content)) {
      t.is(await linkError(document, url), undefined, `${document}:${line}: ${url}`);
    }
  }
});

test("each document that shows a command of gatehouse says how a clone gets the command", (t) => {
  const showing = [...documents].filter(
    ([document, content]) =>
      document.startsWith("docs/") && /^\s*(\$ )?gatehouse /m.test(content.replaceAll(/<!--[^]*?-->/g, "")),
  );
  t.true(showing.length > 8, String(showing.length));
  for (const [document, content] of showing) {
    if (!document.startsWith("docs/decisions/") && !document.startsWith("docs/internals/")) {
      t.true(content.includes("](../README.md#the-command-gatehouse)"), document);
    }
  }
});

test("each picture is shown by a document, and saved by a test of pages", async (t) => {
  const pictures = [...documents].flatMap(([document, content]) =>
    linksOf(content)
      .filter(({ text }) => text.endsWith(".png"))
      .map(({ text }) => join(dirname(document), text)),
  );
  const shown = new Set(pictures);
  t.deepEqual([...shown].sort(), (await readdir("docs/pictures")).map((name) => `docs/pictures/${name}`).sort());
  const tests = await Promise.all(
    (await readdir("test/pages")).map((name) => readFile(join("test/pages", name), "utf8")),
  );
  for (const path of shown) {
    const name = /([\w-]+)-(?:desktop|phone)-(?:light|dark)\.png$/.exec(path)?.[1];
    t.true(
      tests.some((source) => source.includes(`inspect(t, page, "${name}"`)),
      path,
    );
  }
});

test("no document installs the package by its name, which is another package in the registry", (t) => {
  for (const [document, content] of documents) {
    t.notRegex(content, /\bnp(?:m (?:i|install|add|exec)|x)\b[^\n`]*\sgatehouse(?=[\s@`])/, document);
  }
});

test("every alert links to a document", async (t) => {
  const text = await readFile("deploy/prometheus/alerts.yml", "utf8");
  const runbooks = [...text.matchAll(/^ +runbook: (.*)$/gm)];
  t.is(runbooks.length, [...text.matchAll(/^ +- alert: /gm)].length);
  for (const [, url] of runbooks) {
    t.is(await linkError("README.md", url!), undefined, url);
  }
});

test("detects broken links", async (t) => {
  t.is(await linkError("README.md", "docs/none.md"), "leads to no file");
  t.is(await linkError("README.md", "docs/network.md#none"), "leads to no heading");
  t.is(await linkError("docs/network.md", "#node-identities"), undefined);
  t.is(await linkError("docs/network.md", "../src/main.ts#L1"), undefined);
  t.is(await linkError("docs/network.md", "../src/main.ts#L9999"), "leads to no line");
  t.is(await linkError("docs/network.md", "../../elsewhere.md"), "leads out of the repository");
});

test("every document can be reached from the README", (t) => {
  const reached = new Set(["README.md"]);
  for (const document of reached) {
    for (const { text: url } of linksOf(documents.get(document) ?? "")) {
      const target = join(dirname(document), url.split("#")[0]!);
      if (documents.has(target)) {
        reached.add(target);
      }
    }
  }
  t.deepEqual([...reached].sort(), [...documents.keys()].sort());
});

test("every option and script in a document exists", async (t) => {
  const { scripts } = JSON.parse(await readFile("package.json", "utf8")) as { scripts: Record<string, string> };
  const flags = new Set([configFile, ...options].map(({ name }) => `--${name}`));
  for (const folder of ["src/cli", "tools/bench"]) {
    for (const name of (await readdir(folder, { recursive: true })).filter((name) => name.endsWith(".ts"))) {
      const source = await readFile(join(folder, name), "utf8");
      (source.match(/--[a-z][a-z-]*/g) ?? []).forEach((flag) => flags.add(flag));
    }
  }
  for (const [document, content] of documents) {
    // The changelog names removed options, and the worked examples invented ones.
    const isCurrent = !["CHANGELOG.md", "CONTRIBUTING.md"].includes(document);
    for (const code of codeOf(content)) {
      const [named] = /^--[a-z][a-z-]*/.exec(code) ?? [];
      t.true(!isCurrent || named === undefined || flags.has(named), `${document}: ${named}`);
      for (const [, script] of code.matchAll(/\bnpm run (?:--silent )?([a-z]+)/g)) {
        t.true(script! in scripts, `${document}: npm run ${script}`);
      }
    }
  }
});

/** The cells of the table rows that start with this text. */
function rowsOf(markdown: string, start: string): string[][] {
  const rows = markdown.split("\n").filter((line) => line.startsWith(start));
  return rows.map((line) =>
    line
      .slice(1, -1)
      .split("|")
      .map((cell) => cell.trim()),
  );
}

test("the table of routes has every route of the contract, with its rpc and parameters", (t) => {
  const routes = services.flatMap((service) =>
    service.methods.flatMap((method) => {
      const rule = readHttpRoutes(method)[0];
      const name = `${areaOf(service)}.${method.localName}`;
      const shownName = (field: string): string =>
        method.input.fields.find((candidate) => candidate.name === field)!.jsonName;
      const path = rule?.template.replaceAll(/\{(\w+)\}/g, (_, field: string) => `{${shownName(field)}}`);
      return rule === undefined ? [] : [`${rule.method} ${path} ${name}`];
    }),
  );
  const shown = ["| `GET ", "| `POST "]
    .flatMap((start) => rowsOf(interfacePage, start))
    .map(([route = "", rpc = ""]) => `${route.replaceAll("`", "")} ${rpc.replaceAll("`", "")}`);
  t.deepEqual(shown.sort(), routes.sort());
});

test("docs/running.md lists the route of every probe", (t) => {
  const probes = services
    .flatMap(({ methods }) => methods)
    .filter((method) => getOption(method, probe))
    .map((method) => `\`${readHttpRoutes(method)[0]!.template}\``);
  t.true(probes.length > 3);
  const [sentence = ""] = /^- Probes \(.*$/m.exec(documents.get("docs/running.md")!) ?? [];
  t.deepEqual([...sentence.matchAll(/`\/[\w/]+`/g)].map(([path]) => path).sort(), probes.sort());
});

test("the table of messages has every node-call message once", (t) => {
  const shown = rowsOf(interfacePage, "| `")
    .flatMap(([names = ""]) => [...names.matchAll(/`([\w.]+)`/g)].map(([, name]) => name!))
    .filter((name) => nodeCallMessages.includes(name));
  t.deepEqual(shown.sort(), [...nodeCallMessages].sort());
});
