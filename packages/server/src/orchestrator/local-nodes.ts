import type {
  NodeReport,
  OfNode,
  OrchestratorDescription,
  PoolView,
  SpaceUser,
  SpaceView,
} from '@svc/contract/orchestrator';
import type { Capabilities, EngineClient } from '@svc/engine/client';
import type { Nodes } from './nodes.ts';

/** This host, as its engine describes it. */
export class LocalNodes implements Nodes {
  readonly #engine: EngineClient;

  constructor(engine: EngineClient) {
    this.#engine = engine;
  }

  async describe(signal: AbortSignal): Promise<OrchestratorDescription> {
    return describeCapabilities(await this.#engine.capabilities(signal));
  }

  async listNodes(signal: AbortSignal): Promise<readonly NodeReport[]> {
    const description = await this.describe(signal);
    return [{ name: null, problem: description.problem, description }];
  }

  async storage(signal: AbortSignal): Promise<readonly OfNode<SpaceView>[]> {
    return [{ node: null, ...(await this.#engine.space(signal)) }];
  }

  async storageUsers(signal: AbortSignal): Promise<readonly SpaceUser[]> {
    return await this.#engine.spaceUsers(signal);
  }

  async pool(signal: AbortSignal): Promise<readonly OfNode<PoolView>[]> {
    return [{ node: null, ...(await this.#engine.pool(signal)) }];
  }
}

function describeCapabilities(capabilities: Capabilities): OrchestratorDescription {
  const { version, defaultIsolation, runtimes, sandboxes } = capabilities;
  const reasons = runtimes.map(({ name, reason }) => `${name}: ${reason}`).join('; ');
  const problem = defaultIsolation === null ? `no isolation runtime is usable (${reasons})` : null;
  const classes = runtimes.map(({ name, isolation, usable, reason }) => ({
    isolation,
    runtime: name,
    isUsable: usable,
    reason,
  }));
  return { version, isolation: defaultIsolation, problem, classes, sandboxes };
}
