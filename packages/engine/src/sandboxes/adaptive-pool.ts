import type { Isolation, PoolView, SpareProcess } from '@svc/contract/orchestrator';
import type { Kit } from './kit.ts';
import type { Sandbox } from './sandbox.ts';

/** The configuration of a waiting sandbox; a create with an equal one gets it. */
export interface Demand {
  readonly imageId: string;
  readonly reference: string;
  /** Null: a public image. */
  readonly scope: string | null;
  readonly isolation: Isolation;
  readonly vcpus: number;
  readonly memoryMib: number;
  readonly diskMib: number;
}

/** Resources of this host that waiting sandboxes may use. */
export interface WarmHost {
  freeMemoryBytes(): number;
  totalMemoryBytes(): number;
  isDiskShort(): boolean;
}

interface AdaptiveOptions {
  /** Most waiting sandboxes; 0 disables the pool. */
  readonly max: number;
  readonly host: WarmHost;
  readonly make: (demand: Demand) => Promise<Sandbox>;
}

interface Asked {
  readonly demand: Demand;
  /** Times of creates, latest last. */
  times: number[];
  retryAt: number;
  /** Processes of such sandboxes lately, latest last. */
  spares: readonly { readonly process: SpareProcess; readonly at: number }[];
}

interface Waiting {
  readonly demand: Demand;
  /** Processes started in it by key; null: it could not be started. */
  readonly spares: Map<string, SpareProcess | null>;
}

/** A sandbox is removed after this long without demand. */
const KEEP_MS = 10 * 60_000;
/** As many wait as were created in this time, at least one. */
const LATELY_MS = 60_000;
/** After a start that failed, and after memory was short. */
const PAUSE_MS = 60_000;
/** The caller that was just served gets the CPUs first. */
const FILL_DELAY_MS = 50;
/** Longer while one of each waits, so that the first processes of the caller are not slowed down. */
const REFILL_DELAY_MS = 500;
/** Approximate memory of a waiting sandbox. */
const IDLE_MIB: Readonly<Record<Isolation, number>> = { container: 8, gvisor: 64, microvm: 256 };
/** Approximate memory of each process started in it. */
const SPARE_MIB = 16;
const MAX_SPARES = 2;
const SPARE_TIMEOUT_MS = 30_000;
/** The share of free memory that all waiting sandboxes may take. */
const MEMORY_SHARE = 1 / 16;
/** With less than this share of memory free all are removed. */
const LEAST_FREE = 1 / 10;
const MIB = 2 ** 20;

/**
 * Keeps a few sandboxes started of the configurations that were created lately (docs/decisions/0061-adaptive-warm-pool.md).
 * - Each is handed out once, and those of a private image only to callers of its scope.
 * - They are started one after the other, while no create is waiting.
 * - Their number is limited by `max` and by free memory; all are removed when memory is short.
 */
export class AdaptivePool {
  readonly #logger: Kit['logger'];
  readonly #options: AdaptiveOptions;
  readonly #asked = new Map<string, Asked>();
  readonly #waiting = new Map<Sandbox, Waiting>();
  readonly #removals = new Set<Promise<void>>();
  readonly #counts = { handedOut: 0, missed: 0, givenBack: 0 };
  #filling: Promise<void> | undefined;
  #soon: { readonly timer: NodeJS.Timeout; readonly at: number } | undefined;
  #creates = 0;
  #pausedUntil = 0;
  #isClosed = false;

  constructor(logger: Kit['logger'], options: AdaptiveOptions) {
    this.#logger = logger;
    this.#options = options;
  }

  /** Records a create, or one that is likely. */
  expect(demand: Demand): void {
    if (this.#options.max === 0 || this.#isClosed) return;
    const key = keyOf(demand);
    const asked = this.#asked.get(key) ?? { demand, times: [], retryAt: 0, spares: [] };
    asked.times = [...asked.times, Date.now()].slice(-this.#options.max);
    this.#asked.set(key, asked);
    this.#fillSoon();
  }

  /** Records a process that was started in such a sandbox. */
  expectProcess(demand: Demand, process: SpareProcess): void {
    const asked = this.#asked.get(keyOf(demand));
    if (asked === undefined || this.#isClosed) return;
    const others = asked.spares.filter((spare) => spare.process.key !== process.key);
    asked.spares = [...others, { process, at: Date.now() }].slice(-MAX_SPARES);
    this.#fillSoon();
  }

  /** A waiting sandbox of this configuration and runtime that still runs; the caller owns it from now on. */
  take(demand: Demand, runtimeName: string): Sandbox | undefined {
    if (this.#options.max === 0) return undefined;
    const key = keyOf(demand);
    for (const [sandbox, own] of this.#waiting) {
      if (keyOf(own.demand) !== key || sandbox.record.runtime !== runtimeName || sandbox.run === undefined)
        continue;
      this.#waiting.delete(sandbox);
      this.#counts.handedOut++;
      return sandbox;
    }
    this.#counts.missed++;
    return undefined;
  }

  /** Starts no sandboxes until the result is disposed of. */
  duringCreate(): Disposable {
    this.#creates++;
    return {
      [Symbol.dispose]: () => {
        this.#creates--;
        this.#fillSoon();
      },
    };
  }

  /** The sandbox has ended without a request; the caller removes it. */
  forget(sandbox: Sandbox): void {
    this.#waiting.delete(sandbox);
  }

  /** Removes sandboxes without demand, or all when the host is short of memory. Called about once a second. */
  tend(): void {
    if (this.#options.max === 0 || this.#isClosed) return;
    const now = Date.now();
    for (const [key, asked] of this.#asked) {
      if (now - (asked.times.at(-1) ?? 0) >= KEEP_MS) this.#asked.delete(key);
      asked.spares = asked.spares.filter(({ at }) => now - at < KEEP_MS);
    }
    if (this.#isHostShort()) this.#pausedUntil = now + PAUSE_MS;
    const left = this.#targets();
    for (const [sandbox, { demand }] of this.#waiting) {
      const key = keyOf(demand);
      const count = left.get(key) ?? 0;
      if (count === 0) this.#giveBack(sandbox);
      else left.set(key, count - 1);
    }
    this.#fillSoon();
  }

  /** Removes all waiting sandboxes of an image that is about to be removed; of all images when absent. */
  async release(imageId?: string): Promise<void> {
    const isMeant = (demand: Demand) => imageId === undefined || demand.imageId === imageId;
    for (const [key, { demand }] of this.#asked) if (isMeant(demand)) this.#asked.delete(key);
    await this.#filling;
    for (const [sandbox, { demand }] of this.#waiting) if (isMeant(demand)) this.#giveBack(sandbox);
    await Promise.all(this.#removals);
  }

  uses(imageId: string): boolean {
    return [...this.#waiting.values()].some(({ demand }) => demand.imageId === imageId);
  }

  view(): PoolView {
    const waiting = [...this.#waiting].map(([{ record }, { demand, spares }]) => ({
      reference: demand.reference,
      isolation: demand.isolation,
      vcpus: demand.vcpus,
      memoryMib: demand.memoryMib,
      diskMib: demand.diskMib,
      isPrivate: demand.scope !== null,
      createdAt: record.createdAt,
      programs: [...spares.values()].flatMap((process) => process?.cmd ?? []),
    }));
    return { max: this.#options.max, waiting, ...this.#counts };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#soon?.timer);
    await this.release();
  }

  #fillSoon(): void {
    if (this.#isClosed || this.#creates > 0 || this.#asked.size === 0) return;
    const isAnyWithout = this.#asked.values().some(({ demand }) => this.#countOf(demand) === 0);
    const delayMs = isAnyWithout ? FILL_DELAY_MS : REFILL_DELAY_MS;
    const at = Date.now() + delayMs;
    if (this.#soon !== undefined && this.#soon.at <= at) return;
    clearTimeout(this.#soon?.timer);
    const fill = () => {
      this.#soon = undefined;
      this.#filling ??= this.#fill().finally(() => (this.#filling = undefined));
    };
    this.#soon = { timer: setTimeout(fill, delayMs).unref(), at };
  }

  async #fill(): Promise<void> {
    for (let next = this.#nextMissing(); next !== undefined; next = this.#nextMissing()) {
      const { demand } = next;
      try {
        this.#waiting.set(await this.#options.make(demand), { demand, spares: new Map() });
      } catch (error) {
        next.retryAt = Date.now() + PAUSE_MS;
        this.#logger.warn({ error, reference: demand.reference }, 'no sandbox can be kept warm for a minute');
      }
      await this.#fillSpares();
    }
    await this.#fillSpares();
  }

  /** Starts missing processes in waiting sandboxes; one that fails is not tried there again. */
  async #fillSpares(): Promise<void> {
    for (let next = this.#nextSpare(); next !== undefined; next = this.#nextSpare()) {
      const { sandbox, spares, process } = next;
      spares.set(process.key, null);
      try {
        await sandbox.startSpare(process, AbortSignal.timeout(SPARE_TIMEOUT_MS));
        spares.set(process.key, process);
      } catch (error) {
        this.#logger.debug(
          { error, program: process.cmd },
          'a program could not be started in a warm sandbox',
        );
      }
    }
  }

  #nextSpare() {
    if (this.#isClosed || this.#creates > 0) return undefined;
    for (const [sandbox, { demand, spares }] of this.#waiting) {
      const missing = this.#asked.get(keyOf(demand))?.spares.find(({ process }) => !spares.has(process.key));
      if (missing !== undefined) return { sandbox, spares, process: missing.process };
    }
    return undefined;
  }

  #nextMissing(): Asked | undefined {
    if (this.#isClosed || this.#creates > 0) return undefined;
    const targets = this.#targets();
    const isMissing = ({ demand, retryAt }: Asked) =>
      retryAt <= Date.now() && this.#countOf(demand) < (targets.get(keyOf(demand)) ?? 0);
    return this.#latestFirst().find(isMissing);
  }

  /** How many of each configuration should wait: one of each, latest first, then more of the frequent ones. */
  #targets(): Map<string, number> {
    const targets = new Map<string, number>();
    const now = Date.now();
    if (now < this.#pausedUntil || this.#isHostShort()) return targets;
    let mib = (this.#options.host.freeMemoryBytes() * MEMORY_SHARE) / MIB;
    let left = this.#options.max;
    for (let round = 1; round <= this.#options.max; round++) {
      for (const { demand, times, spares } of this.#latestFirst()) {
        const wanted = Math.max(1, times.filter((time) => now - time < LATELY_MS).length);
        const cost = IDLE_MIB[demand.isolation] + SPARE_MIB * spares.length;
        if (wanted < round || left === 0 || cost > mib) continue;
        targets.set(keyOf(demand), round);
        left--;
        mib -= cost;
      }
    }
    return targets;
  }

  #isHostShort(): boolean {
    const { host } = this.#options;
    return host.isDiskShort() || host.freeMemoryBytes() < host.totalMemoryBytes() * LEAST_FREE;
  }

  #latestFirst(): Asked[] {
    return [...this.#asked.values()].toSorted((a, b) => (b.times.at(-1) ?? 0) - (a.times.at(-1) ?? 0));
  }

  #countOf(demand: Demand): number {
    const key = keyOf(demand);
    return [...this.#waiting.values()].filter((own) => keyOf(own.demand) === key).length;
  }

  #giveBack(sandbox: Sandbox): void {
    this.#waiting.delete(sandbox);
    this.#counts.givenBack++;
    const removal = sandbox
      .remove()
      .catch((error: unknown) =>
        this.#logger.error(
          { error },
          'a waiting sandbox could not be removed; the next start of the engine removes it',
        ),
      )
      .finally(() => this.#removals.delete(removal));
    this.#removals.add(removal);
  }
}

/** SAFETY: the scope is part of the key, so that sandboxes of a private image go only to callers that may use it. */
function keyOf({ imageId, scope, isolation, vcpus, memoryMib, diskMib }: Demand): string {
  return JSON.stringify([imageId, scope, isolation, vcpus, memoryMib, diskMib]);
}
