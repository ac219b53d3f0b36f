import type { SandboxSpec } from '@svc/contract';
import type { CreateSandbox } from '@svc/contract/orchestrator';
import { RUNTIMES, runtimeNamed, type RuntimeName } from '../../packages/engine/src/runtime/runtimes.ts';
import { startSandbox, type TestSandbox } from './sandbox-fixture.ts';
import { TestEngine } from './start-engine.ts';

/** Sandboxes on every runtime of this host. An engine uses one runtime for each class, so this takes several. */
export class EngineOfEachRuntime implements AsyncDisposable {
  readonly #engines: ReadonlyMap<string, TestEngine>;

  private constructor(engines: ReadonlyMap<string, TestEngine>) {
    this.#engines = engines;
  }

  static async start(args: readonly string[] = []): Promise<EngineOfEachRuntime> {
    const environments = new Map(RUNTIMES.map(({ name }) => [keyOf(name), environmentOf(name)]));
    const starts = await Promise.allSettled(
      [...environments].map(async ([key, env]) => [key, await TestEngine.start({ args, env })] as const),
    );
    const started = starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []));
    const failed = starts.find((start) => start.status === 'rejected');
    if (failed === undefined) return new EngineOfEachRuntime(new Map(started));
    for (const [, engine] of started) await engine.destroy();
    throw new Error('an engine did not start', { cause: failed.reason });
  }

  engineOf(runtime: RuntimeName): TestEngine {
    const engine = this.#engines.get(keyOf(runtime));
    if (engine === undefined) throw new Error(`there is no engine for ${runtime}`);
    return engine;
  }

  async start(
    runtime: RuntimeName,
    more: Partial<SandboxSpec> = {},
    request: Partial<CreateSandbox> = {},
  ): Promise<TestSandbox> {
    const { isolation } = runtimeNamed(runtime);
    const sandbox = await startSandbox(this.engineOf(runtime), isolation, more, request);
    if (sandbox.view.runtime !== runtime)
      throw new Error(`${runtime} was asked for, ${sandbox.view.runtime} came`);
    return sandbox;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#engines.values()].map((engine) => engine.destroy()));
  }
}

/** The environment of an engine that uses this runtime: those that it prefers in the same class are not found. */
export function environmentOf(name: RuntimeName): Record<string, string> {
  const { isolation } = runtimeNamed(name);
  const rank = RUNTIMES.findIndex((runtime) => runtime.name === name);
  const preferred = RUNTIMES.slice(0, rank).filter((runtime) => runtime.isolation === isolation);
  return Object.fromEntries(preferred.map(({ variable }) => [variable, '/nowhere']));
}

function keyOf(name: RuntimeName): string {
  return Object.keys(environmentOf(name)).join(' ');
}
