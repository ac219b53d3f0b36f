import type { SandboxSpec } from '@svc/contract';
import { freemem, totalmem } from 'node:os';
import type { PoolView, SpareProcess } from '../client/engine-api.ts';
import type { Image } from '../images/images.ts';
import type { Isolation, Runtime } from '../runtime/runtime.ts';
import { AdaptivePool, type Demand } from './adaptive-pool.ts';
import type { Kit } from './kit.ts';
import { diskSizeMib } from './origin.ts';
import { limitsOf } from './limits-of.ts';
import type { Sandbox } from './sandbox.ts';
import { fitsWarm, WarmPool, type WarmTarget } from './warm-pool.ts';

export interface WarmOptions {
  /** Sandboxes kept started per image reference. */
  readonly warm: readonly WarmTarget[];
  /** How many are kept started of what was asked for lately, at most. */
  readonly warmAdaptive: number;
}

export interface WarmRequest {
  readonly spec: SandboxSpec;
  readonly isolation: Isolation | undefined;
  /** Absent: whatever the reference of the spec leads to. */
  readonly imageId?: string;
}

/** What a sandbox was made of. */
interface Made {
  readonly spec: SandboxSpec;
  readonly image: Image;
  readonly isolation: Isolation;
  readonly scope: string | null;
}

/** Started sandboxes that wait for a caller: those that the operator wants, and those that are likely to be asked for. */
export class WarmSandboxes {
  readonly #kit: Pick<Kit, 'defaultIsolation'>;
  readonly #wanted: WarmPool;
  readonly #likely: AdaptivePool;

  constructor(
    kit: Pick<Kit, 'logger' | 'space' | 'defaultIsolation'>,
    options: WarmOptions,
    make: (request: WarmRequest) => Promise<Sandbox>,
  ) {
    this.#kit = kit;
    this.#wanted = new WarmPool(kit, options.warm, (reference, isolation) =>
      make({ spec: { image: { type: 'oci', reference } }, isolation }),
    );
    this.#likely = new AdaptivePool(kit.logger, {
      max: options.warmAdaptive,
      host: {
        freeMemoryBytes: freemem,
        totalMemoryBytes: totalmem,
        isDiskShort: () => kit.space.view().isShort,
      },
      make: (demand) => make({ spec: specOf(demand), isolation: demand.isolation, imageId: demand.imageId }),
    });
  }

  start(): void {
    this.#wanted.start();
  }

  /** Undefined when none waits, or when the caller wants something that only a cold start can give. */
  take(spec: SandboxSpec, image: Image, runtime: Runtime, scope: string | null): Sandbox | undefined {
    if (!fitsWarm(spec)) return undefined;
    const demand = demandOf(spec, image, runtime.isolation, scope);
    const sandbox = this.#wanted.take(spec, image, runtime) ?? this.#likely.take(demand, runtime.name);
    this.#likely.expect(demand);
    return sandbox;
  }

  /** An image has just come: somebody is going to use it, with the class and the size that a caller gets who names none. */
  expect(image: Image, reference: string, scope: string | null): void {
    const isolation = this.#kit.defaultIsolation;
    if (isolation !== null)
      this.#likely.expect(demandOf({ image: { type: 'oci', reference } }, image, isolation, scope));
  }

  /** In those that wait for who asks for the same as this one was made of. */
  expectProcess(made: Made, process: SpareProcess): void {
    const { spec, image, isolation, scope } = made;
    if (fitsWarm(spec)) this.#likely.expectProcess(demandOf(spec, image, isolation, scope), process);
  }

  duringCreate(): Disposable {
    return this.#likely.duringCreate();
  }

  forget(sandbox: Sandbox): void {
    this.#wanted.forget(sandbox);
    this.#likely.forget(sandbox);
  }

  uses(imageId: string): boolean {
    return this.#wanted.uses(imageId) || this.#likely.uses(imageId);
  }

  /** Called about once a second. */
  tend(): void {
    this.#likely.tend();
  }

  /** Before an image is removed; all images when absent. What the operator wants warm stays. */
  async release(imageId?: string): Promise<void> {
    await this.#likely.release(imageId);
  }

  view(): PoolView {
    return this.#likely.view();
  }

  async close(): Promise<void> {
    await Promise.all([this.#wanted.close(), this.#likely.close()]);
  }
}

function demandOf(spec: SandboxSpec, image: Image, isolation: Isolation, scope: string | null): Demand {
  return {
    imageId: image.id,
    reference: spec.image.reference,
    scope: image.scopes === null ? null : scope,
    isolation,
    ...limitsOf(spec),
    diskMib: diskSizeMib(spec),
  };
}

function specOf({ reference, vcpus, memoryMib, diskMib }: Demand): SandboxSpec {
  return {
    image: { type: 'oci', reference },
    resources: { vcpus, memory_mib: memoryMib, disk_size_mib: diskMib },
  };
}
