import type { SandboxSpec } from '@svc/contract';
import type { CreateSandbox } from '@svc/engine/client';
import { startSandbox, type TestSandbox } from './sandbox-fixture.ts';
import { TestEngine } from './start-engine.ts';

export type RuntimeName = 'runc' | 'crun' | 'runsc';
export const RUNTIMES: readonly RuntimeName[] = ['runc', 'crun', 'runsc'];

/** Sandboxes on every runtime of this host. An engine has one runtime for each class, so this takes two. */
export class EngineOfEachRuntime implements AsyncDisposable {
  readonly #engine: TestEngine;
  readonly #withoutCrun: TestEngine;

  private constructor(engine: TestEngine, withoutCrun: TestEngine) {
    this.#engine = engine;
    this.#withoutCrun = withoutCrun;
  }

  static async start(args: readonly string[] = []): Promise<EngineOfEachRuntime> {
    const starts = [{ args }, { args, env: { SVC_CRUN: '/nowhere/crun' } }].map((options) =>
      TestEngine.start(options),
    );
    const [one, other] = await Promise.allSettled(starts);
    if (one?.status === 'fulfilled' && other?.status === 'fulfilled')
      return new EngineOfEachRuntime(one.value, other.value);
    for (const start of [one, other]) if (start?.status === 'fulfilled') await start.value.destroy();
    throw new Error('an engine did not start', { cause: one?.status === 'rejected' ? one.reason : other });
  }

  engineOf(runtime: RuntimeName): TestEngine {
    return runtime === 'runc' ? this.#withoutCrun : this.#engine;
  }

  async start(
    runtime: RuntimeName,
    more: Partial<SandboxSpec> = {},
    request: Partial<CreateSandbox> = {},
  ): Promise<TestSandbox> {
    const isolation = runtime === 'runsc' ? 'gvisor' : 'container';
    const sandbox = await startSandbox(this.engineOf(runtime), isolation, more, request);
    if (sandbox.view.runtime !== runtime)
      throw new Error(`${runtime} was asked for, ${sandbox.view.runtime} came`);
    return sandbox;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#engine.destroy(), this.#withoutCrun.destroy()]);
  }
}
