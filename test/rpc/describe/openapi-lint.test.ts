/** The OpenAPI document, as two linters read it that know nothing of this node. */
import { createConfig, lintFromString } from "@redocly/openapi-core";
import spectralCore, { type RulesetDefinition } from "@stoplight/spectral-core";
import spectralRulesets from "@stoplight/spectral-rulesets";
import test from "ava";
import { ask } from "../../helpers/plain-client.js";
import { sharedTestNode } from "../../helpers/start-node.js";

const node = sharedTestNode({ "tlsnotary-enabled": true });

async function readDocument(): Promise<string> {
  return (await ask(node.port, "/openapi.json")).text;
}

/**
 * The specification of the interface has both paths. No request fits both of them in earnest: an address begins with
 * `stor-`, and a path that is written out goes before one with a parameter.
 */
const bothSpecified =
  "no-ambiguous-paths at #/paths/~1storage-program~1owner~1{owner}: Paths should resolve unambiguously. Found two " +
  "ambiguous paths: `/storage-program/{storageAddress}/all` and `/storage-program/owner/{owner}`.";

/** What the messages of a stream are stands in an extension, in which this linter does not look. */
const ofStreams = [
  'no-unused-components at #/components/schemas/event.WatchResponse: Component: "event.WatchResponse" is never used.',
];

test("Redocly finds nothing but two paths that are specified so, and messages of streams", async (t) => {
  const config = await createConfig({ extends: ["recommended"] });
  const found = await lintFromString({ source: await readDocument(), absoluteRef: "openapi.json", config });
  t.deepEqual(
    found.map(({ ruleId, message, location: [place] }) => `${ruleId} at ${place?.pointer}: ${message}`),
    [bothSpecified, ...ofStreams],
  );
});

test("Spectral finds nothing", async (t) => {
  const spectral = new spectralCore.Spectral();
  spectral.setRuleset({ extends: [spectralRulesets.oas as RulesetDefinition] });
  const found = await spectral.run(await readDocument());
  t.deepEqual(
    found.map(({ code, path, message }) => `${code} at ${path.join("/")}: ${message}`),
    [],
  );
});
