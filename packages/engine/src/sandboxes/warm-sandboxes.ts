import type { SandboxSpec } from '@svc/contract';
import { freemem, totalmem } from 'node:os';
import type { Isolation, PoolView, SpareProcess } from '@svc/contract/orchestrator';
import type { Image } from '../images/images.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { AdaptivePool, type Demand } from './adaptive-pool.ts';
import type { Kit } from './kit.ts';
import { diskSizeMib } from './origin.ts';
import { limitsOf } from './limits-of.ts';
import type { Sandbox } from './sandbox.ts';
import { fitsWarm, WarmPool, type WarmTarget } from './warm-pool.ts';

export interface WarmOptions {
  /** The number of started sandboxes per image reference. */
  readonly warm: readonly WarmTarget[];
  /** The largest number of started sandboxes of recently requested kinds. */
  readonly warmAdaptive: number;
}

export interface WarmRequest {
  readonly spec: SandboxSpec;
  readonly isolation: Isolation | undefined;
  /** Absent: the image that the reference of the spec names. */
  readonly imageId?: string;
}

/** The image and spec that a sandbox was made from. */
interface Made {
  readonly spec: SandboxSpec;
  readonly image: Image;
  readonly isolation: Isolation;
  readonly scope: string | null;
}

/** The two pools of started sandboxes: the operator's fixed one, and the adaptive one for likely requests. */
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

  /** Undefined when the pools have none, or when the spec asks for something that only a cold start can give. */
  take(spec: SandboxSpec, image: Image, runtime: Runtime, scope: string | null): Sandbox | undefined {
    if (!fitsWarm(spec)) return undefined;
    const demand = demandOf(spec, image, runtime.isolation, scope);
    const sandbox = this.#wanted.take(spec, image, runtime) ?? this.#likely.take(demand, runtime.name);
    this.#likely.expect(demand);
    return sandbox;
  }

  /** Expects a create of an image that was just pulled, with the default class and size. */
  expect(image: Image, reference: string, scope: string | null): void {
    const isolation = this.#kit.defaultIsolation;
    if (isolation !== null)
      this.#likely.expect(demandOf({ image: { type: 'oci', reference } }, image, isolation, scope));
  }

  /** Expects this process in pooled sandboxes of the same kind. */
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

  /** Called before an image is removed; of all images when absent. The operator's pool stays. */
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
