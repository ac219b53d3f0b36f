import type { OrchestratorDescription, PoolView, SpaceUser, SpaceView } from '@svc/contract/orchestrator';
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

  async storage(signal: AbortSignal): Promise<SpaceView> {
    return await this.#engine.space(signal);
  }

  async storageUsers(signal: AbortSignal): Promise<readonly SpaceUser[]> {
    return await this.#engine.spaceUsers(signal);
  }

  async pool(signal: AbortSignal): Promise<PoolView> {
    return await this.#engine.pool(signal);
  }
}

function describeCapabilities(capabilities: Capabilities): OrchestratorDescription {
  const { version, defaultIsolation, runtimes } = capabilities;
  const reasons = runtimes.map(({ name, reason }) => `${name}: ${reason}`).join('; ');
  const problem = defaultIsolation === null ? `no isolation runtime is usable (${reasons})` : null;
  const classes = runtimes.map(({ name, isolation, usable, reason }) => ({
    isolation,
    runtime: name,
    isUsable: usable,
    reason,
  }));
  return { version, isolation: defaultIsolation, problem, classes };
}
