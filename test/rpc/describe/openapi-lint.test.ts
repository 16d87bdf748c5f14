/** The OpenAPI document, as a linter reads it that knows nothing of this node. */
import { ask } from "../../helpers/wire/plain-client.js";
import { sharedTestNode } from "../../helpers/nodes/start-node.js";
import { loadTool, whyNoTool } from "../../helpers/nodes/tools.js";
import { testUnless } from "../../helpers/nodes/when.js";

/** What is used of Redocly, whose types are installed with it. */
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

/** Probes have no parameters, and no header that they would refuse. */
const ofProbes = ["~1health", "~1health~1subsystems", "~1version"].map(
  (path) =>
    `operation-4xx-response at #/paths/${path}/get/responses: Operation must have at least one \`4XX\` response.`,
);

testUnless(whyNoTool("@redocly/openapi-core"))(
  "Redocly finds nothing but two paths that are specified so, probes that refuse nothing, and messages of streams",
  async (t) => {
    const { createConfig, lintFromString } = loadTool<Redocly>("@redocly/openapi-core");
    const config = await createConfig({ extends: ["recommended"] });
    const source = (await ask(node.port, "/openapi.json")).text;
    const found = await lintFromString({ source, absoluteRef: "openapi.json", config });
    t.deepEqual(
      found.map(({ ruleId, message, location: [place] }) => `${ruleId} at ${place?.pointer}: ${message}`),
      [bothSpecified, ...ofProbes, ...ofStreams],
    );
  },
);
