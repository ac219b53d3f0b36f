import type { SandboxSpec } from '@svc/contract';
import type { Isolation } from '@svc/contract/orchestrator';
import { DEFAULT_DISK_MIB, DEFAULT_MEMORY_MIB, DEFAULT_VCPUS } from '@svc/contract/spec';
import type { Image } from '../images/images.ts';
import { readRequestedInterface } from '../network/requested-interface.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { Kit } from './kit.ts';
import type { Sandbox } from './sandbox.ts';

export interface WarmTarget {
  readonly reference: string;
  readonly count: number;
  readonly isolation?: Isolation | undefined;
}

type MakeWarm = (reference: string, isolation: Isolation | undefined) => Promise<Sandbox>;

const RETRY_MS = 5_000;

/**
 * Started sandboxes that wait for a caller. Each is handed out once: it leaves the pool before anything else happens, and its
 * record has no id until then, so a restart removes it rather than offering it again.
 */
export class WarmPool {
  readonly #kit: Pick<Kit, 'logger'>;
  readonly #targets: readonly WarmTarget[];
  readonly #make: MakeWarm;
  readonly #waiting = new Set<Sandbox>();
  #filling: Promise<void> | undefined;
  #retry: NodeJS.Timeout | undefined;
  /** Set by a caller that finds it filling: one may have been taken from a target that was already filled. */
  #isWanted = false;
  #closed = false;

  constructor(kit: Pick<Kit, 'logger'>, targets: readonly WarmTarget[], make: MakeWarm) {
    this.#kit = kit;
    this.#targets = targets;
    this.#make = make;
  }

  /** Brings every target to its count, in the background. */
  start(): void {
    if (this.#closed || this.#targets.length === 0) return;
    this.#isWanted = true;
    this.#filling ??= this.#fillWhileWanted().finally(() => {
      this.#filling = undefined;
    });
  }

  /** Undefined when none waits, or when the caller wants something that only a cold start can give. */
  take(spec: SandboxSpec, image: Image, runtime: Runtime): Sandbox | undefined {
    if (!fitsWarm(spec) || !hasDefaultSize(spec)) return undefined;
    for (const sandbox of this.#waiting) {
      const { record } = sandbox;
      if (record.image.id !== image.id || record.runtime !== runtime.name || sandbox.run === undefined)
        continue;
      this.#waiting.delete(sandbox);
      // Refilled when the caller has been served: it should not wait behind the next one.
      setTimeout(() => this.start(), 50).unref();
      return sandbox;
    }
    return undefined;
  }

  forget(sandbox: Sandbox): void {
    if (this.#waiting.delete(sandbox)) this.start();
  }

  uses(imageId: string): boolean {
    return [...this.#waiting].some((sandbox) => sandbox.record.image.id === imageId);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#retry);
    await this.#filling;
    await Promise.allSettled([...this.#waiting].map((sandbox) => sandbox.remove()));
    this.#waiting.clear();
  }

  async #fillWhileWanted(): Promise<void> {
    while (this.#isWanted) {
      this.#isWanted = false;
      await this.#fill();
    }
  }

  async #fill(): Promise<void> {
    for (const target of this.#targets) {
      while (!this.#closed && this.#countOf(target) < target.count) {
        try {
          this.#waiting.add(await this.#make(target.reference, target.isolation));
        } catch (error) {
          this.#kit.logger.warn(
            { error, reference: target.reference },
            'the warm pool cannot be filled; trying again',
          );
          this.#startLater();
          break;
        }
      }
    }
  }

  /** One timer for all that failed: were it one each, every round would double them. */
  #startLater(): void {
    this.#retry ??= setTimeout(() => {
      this.#retry = undefined;
      this.start();
    }, RETRY_MS).unref();
  }

  #countOf(target: WarmTarget): number {
    return [...this.#waiting].filter(({ record }) => {
      const sameClass = target.isolation === undefined || record.isolation === target.isolation;
      return sameClass && record.spec.image.reference === target.reference;
    }).length;
  }
}

function hasDefaultSize({ resources }: SandboxSpec): boolean {
  return (
    (resources?.vcpus ?? DEFAULT_VCPUS) === DEFAULT_VCPUS &&
    (resources?.memory_mib ?? DEFAULT_MEMORY_MIB) === DEFAULT_MEMORY_MIB &&
    (resources?.disk_size_mib ?? DEFAULT_DISK_MIB) === DEFAULT_DISK_MIB
  );
}

/** What was fixed when a waiting sandbox was started, besides its size, must be what the caller wants; the rest can still be given. */
export function fitsWarm(spec: SandboxSpec): boolean {
  return (
    (spec.runtime?.hostname ?? null) === null &&
    (spec.mounts ?? []).length === 0 &&
    (spec.rlimits ?? []).length === 0 &&
    (spec.security_profile ?? 'default') === 'default' &&
    (spec.network?.enabled ?? true) &&
    readRequestedInterface(spec.network) === null
  );
}
