/** Runs a campaign: load, and rounds of faults. After each round the network must recover, and all nodes are compared. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Teardown } from "../../test/helpers/nodes/teardown.js";
import { compareDatabases, compareChains } from "./at-the-end.js";
import type { PlannedFault, Stage } from "./faults/fault.js";
import { type Prober, startProber } from "./load/prober.js";
import { startReaders } from "./load/readers.js";
import { type Load, startLoad } from "./load/senders.js";
import { type CampaignResult, countResults, latenciesIn, type Phase, type Round } from "./result.js";
import { createRest, type Rest } from "./rest.js";
import { planOneByOne, planRound } from "./schedule.js";
import type { CampaignSettings, FaultKind } from "./settings.js";
import { chooseKinds, createStage } from "./stage.js";

/** Duration in milliseconds of the load without a fault, before each round. */
const calmMs = 2_000;
/** Delay in milliseconds until the prober has delivered its results, which it does twice a second. */
const probeDelayMs = 600;

/** Running parts of a campaign. */
interface CampaignParts {
  readonly stage: Stage;
  readonly load: Load;
  readonly prober: Prober;
  readonly rest: Rest;
}

/**
 * Runs a campaign. The teardown `t` closes everything that the campaign opens.
 *
 * @throws Error if the campaign cannot start.
 */
export async function runCampaign(t: Teardown, settings: CampaignSettings): Promise<CampaignResult> {
  const { seed, log } = settings;
  const startedMs = Date.now();
  const stage = await createStage(t, settings);
  const { network, model, client } = stage;
  const { possible, skipped } = chooseKinds(settings.kinds, stage);
  log("starting the nodes");
  const [authority, follower, joiner] = network.nodes;
  await authority!.start();
  await follower!.start();
  const prober = startProber(network.nodes.map(({ port }) => port));
  t.teardown(() => prober.stop());
  const { nodes, genesisHash } = network;
  const load = startLoad({ seed, rate: settings.rate, network: genesisHash, nodes, model, client });
  const stopReaders = startReaders(seed, { nodes, model, client });
  // A node may fail to start; the load and the readers must not go on then.
  t.teardown(() => Promise.all([load.stop(), stopReaders()]));
  await sleep(calmMs);
  await joiner!.start();
  const rest = createRest(stage, load, settings.restMs);
  const { rounds, calm, endedEarly } = await runRounds({ stage, load, prober, rest }, possible, settings);
  log("comparing everything");
  await Promise.all([load.stop(), stopReaders()]);
  if (endedEarly === undefined) {
    await compareChains(stage);
  }
  await stopAll(stage);
  if (endedEarly === undefined) {
    await compareDatabases(stage, load.senders);
  }
  await prober.stop();
  return {
    ...{ seed, engine: settings.engine, minutes: settings.minutes, rounds, skipped },
    seconds: (Date.now() - startedMs) / 1000,
    findings: model.findings,
    counts: { ...model.counts, blocks: model.height },
    calm: latenciesIn(prober.probes, calm, () => true),
    ...(endedEarly !== undefined && { endedEarly }),
  };
}

async function runRounds(parts: CampaignParts, kinds: readonly FaultKind[], settings: CampaignSettings) {
  const { seed, log, isShort = false, rounds: maxRounds = Infinity } = settings;
  const { stage, load, rest } = parts;
  const rounds: Round[] = [];
  const calm: Phase[] = [];
  const endMs = performance.now() + settings.minutes * 60_000;
  let endedEarly = (await rest()).failure;
  for (let number = 1; endedEarly === undefined && number <= maxRounds && performance.now() < endMs; number++) {
    const planned = (isShort ? planOneByOne : planRound)(seed, number, kinds);
    if (planned.length === 0) {
      break;
    }
    stage.model.setRound(number);
    load.resume();
    const calmFromMs = Date.now();
    await sleep(calmMs);
    calm.push({ fromMs: calmFromMs, toMs: Date.now() });
    const names = planned.map(({ target, title }) => `${stage.network.nodes[target]!.name}: ${title}`);
    const { findings } = stage.model;
    const findingCount = findings.length;
    log(`round ${number}: ${names.join("; ")}`);
    const result = await runRound(parts, number, planned);
    rounds.push(result.round);
    endedEarly = result.endedEarly;
    findings.slice(findingCount).forEach(({ column, sentence }) => log(`  ${column}: ${sentence}`));
  }
  return { rounds, calm, endedEarly };
}

async function runRound({ stage, prober, rest }: CampaignParts, number: number, planned: readonly PlannedFault[]) {
  const { nodes } = stage.network;
  const fromMs = Date.now();
  await Promise.all(planned.map((fault) => fault.run(stage)));
  const during: Phase = { fromMs, toMs: Date.now() };
  const { restMs, failure } = await rest();
  await sleep(probeDelayMs);
  const targets = planned.map(({ target }) => target);
  const round: Round = {
    ...{ number, ...during, restMs },
    faults: planned.map(({ kind, target, title }) => ({ kind, title, node: nodes[target]!.name })),
    said: Object.fromEntries(
      targets.map((target) => [nodes[target]!.name, countResults(prober.probes, during, target)]),
    ),
    others: latenciesIn(prober.probes, [during], ({ node }) => !targets.includes(node)),
  };
  return { round, endedEarly: failure };
}

async function stopAll({ network, model }: Stage): Promise<void> {
  for (const node of network.nodes.filter(({ isRunning }) => isRunning)) {
    const code = await node.end("SIGTERM");
    if (code !== 0) {
      model.find("crashed", `${node.name} ended with ${code ?? "a signal"} when it was asked to stop at the end.`);
    }
  }
}
