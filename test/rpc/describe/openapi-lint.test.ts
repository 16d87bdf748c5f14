/** The OpenAPI document passes an independent linter. */
import { ask } from "../../helpers/wire/plain-client.js";
import { sharedTestNode } from "../../helpers/nodes/start-node.js";
import { loadTool, whyNoTool } from "../../helpers/process/programs.js";
import { testUnless } from "../../helpers/nodes/when.js";

/** Used part of Redocly. Its types are installed only with the tools. */
interface Redocly {
  readonly createConfig: (config: { readonly extends: readonly string[] }) => Promise<unknown>;
  readonly lintFromString: (document: {
    readonly source: string;
    readonly absoluteRef: string;
    readonly config: unknown;
  }) => Promise<readonly Finding[]>;
}

interface Finding {
  readonly ruleId: string;
  readonly message: string;
  readonly location: readonly { readonly pointer?: string }[];
}

const node = sharedTestNode({ "tlsnotary-enabled": true });

/**
 * The specification requires both paths. No real request matches both: an address starts with `stor-`, and literal
 * segments take precedence over parameters.
 */
const bothSpecified =
  "no-ambiguous-paths at #/paths/~1storage-program~1owner~1{owner}: Paths should resolve unambiguously. Found two " +
  "ambiguous paths: `/storage-program/{storageAddress}/all` and `/storage-program/owner/{owner}`.";

/** An extension describes the messages of a stream, and this linter ignores extensions. */
const ofStreams = [
  'no-unused-components at #/components/schemas/event.WatchResponse: Component: "event.WatchResponse" is never used.',
];

testUnless(whyNoTool("@redocly/openapi-core"))(
  "Redocly finds nothing but two paths that are specified so, and messages of streams",
  async (t) => {
    const { createConfig, lintFromString } = loadTool<Redocly>("@redocly/openapi-core");
    const config = await createConfig({ extends: ["recommended"] });
    const source = (await ask(node.port, "/openapi.json")).text;
    const found = await lintFromString({ source, absoluteRef: "openapi.json", config });
    t.deepEqual(
      found.map(({ ruleId, message, location: [place] }) => `${ruleId} at ${place?.pointer}: ${message}`),
      [bothSpecified, ...ofStreams],
    );
  },
);
