/**
 * Services of the public port: some are available as soon as the port is bound, the others once the node has booted.
 */
import { ChainService } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import { EventService } from "../../../gen/gatehouse/event/v1/event_pb.js";
import { InfoService } from "../../../gen/gatehouse/info/v1/info_pb.js";
import { SearchService } from "../../../gen/gatehouse/search/v1/search_pb.js";
import { StateService } from "../../../gen/gatehouse/state/v1/state_pb.js";
import { StorageService } from "../../../gen/gatehouse/storage/v1/storage_pb.js";
import { ZkService } from "../../../gen/gatehouse/zk/v1/zk_pb.js";
import { createDeferredService } from "../../rpc/deferred-service.js";
import type { Implementation, ServedService } from "../../rpc/service.js";
import type { NodeCore } from "../lifecycle/core.js";
import { createStartingError } from "./public-facts.js";
import { type Implementations, type LaterImplementations, listServices } from "./services.js";

/** Services that are available as soon as the port is bound. */
export interface EarlyImplementations extends Omit<Implementations, keyof LaterImplementations> {
  readonly info: Partial<Implementation<typeof InfoService>>;
}

/** Services of the public port, to which more implementations are added later. */
export interface PublicServices {
  readonly services: readonly ServedService[];
  /** Adds implementations that need a booted node. They are not called before `open`. */
  readonly provide: (implementations: Partial<LaterImplementations>) => void;
  /**
   * Lets clients call the added implementations.
   *
   * @throws Error if an implementation is missing.
   */
  readonly open: () => void;
}

/** Lists the services. Each rpc that has no implementation yet fails with STATE_NOT_READY. */
export function createPublicServices(
  core: Pick<NodeCore, "progress">,
  { info: earlyInfo, ...early }: EarlyImplementations,
): PublicServices {
  const startingError = () => createStartingError(core);
  const later = {
    info: createDeferredService(InfoService, earlyInfo, startingError),
    chain: createDeferredService(ChainService, {}, startingError),
    storage: createDeferredService(StorageService, {}, startingError),
    zk: createDeferredService(ZkService, {}, startingError),
    state: createDeferredService(StateService, {}, startingError),
    search: createDeferredService(SearchService, {}, startingError),
    event: createDeferredService(EventService, {}, startingError),
  };
  let provided: Partial<LaterImplementations> = {};
  let checks: Implementations["chainBodyChecks"] | undefined;
  const services = listServices({
    ...early,
    info: later.info.implementation,
    chain: later.chain.implementation,
    chainBodyChecks: {
      submitTransaction(contentLength, caller) {
        if (checks === undefined) {
          throw startingError();
        }
        checks.submitTransaction?.(contentLength, caller);
      },
    },
    storage: later.storage.implementation,
    zk: later.zk.implementation,
    state: later.state.implementation,
    search: later.search.implementation,
    event: later.event.implementation,
  });
  return {
    services,
    provide(implementations) {
      provided = { ...provided, ...implementations };
    },
    open() {
      const { info, chain, chainBodyChecks, storage, zk, state, search, event } = provided;
      later.info.provide(requireImplementation("info", info));
      later.chain.provide(requireImplementation("chain", chain));
      later.storage.provide(requireImplementation("storage", storage));
      later.zk.provide(requireImplementation("zk", zk));
      later.state.provide(requireImplementation("state", state));
      later.search.provide(requireImplementation("search", search));
      later.event.provide(requireImplementation("event", event));
      checks = requireImplementation("chainBodyChecks", chainBodyChecks);
    },
  };
}

/** Returns the implementation, or throws an error if it is missing. */
function requireImplementation<T>(name: keyof LaterImplementations, implementation: T | undefined): T {
  if (implementation === undefined) {
    throw new Error(`No row of the boot provides the implementation of ${name}.`);
  }
  return implementation;
}
