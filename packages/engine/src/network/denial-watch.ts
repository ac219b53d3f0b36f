import type { Logger } from 'pino';
import type { NetworkReport } from '../policy/network-decision.ts';
import { takeDeniedPackets, type DeniedPackets } from './denied-packets.ts';

export interface DenialWatchOptions {
  readonly instance: string;
  readonly onDenied: (hostInterface: string, report: NetworkReport) => void;
  /** Whether any sandbox could have been denied something. */
  readonly isNeeded: () => boolean;
  readonly logger: Pick<Logger, 'warn'>;
}

/** The poll interval without watchers, and with one. */
const CALM_MS = 10_000;
const WATCHED_MS = 1000;

/** Polls the packet filter for denied packets and reports them; more often while there are watchers. */
export class DenialWatch {
  readonly #options: DenialWatchOptions;
  #looking: Promise<void> | null = null;
  #next: Promise<void> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #watchers = 0;
  #isOpen = false;
  /** Packets by interface that were reported before the counter had them. */
  readonly #ahead = new Map<string, number>();

  constructor(options: DenialWatchOptions) {
    this.#options = options;
  }

  open(): void {
    this.#isOpen = true;
    this.#plan();
  }

  /** Denials from now on are not reported. */
  close(): void {
    this.#isOpen = false;
    this.#ahead.clear();
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  /** Until it is disposed of, denials are reported within about a second. */
  watch(): Disposable {
    this.#watchers += 1;
    this.#plan();
    let isOver = false;
    return {
      [Symbol.dispose]: () => {
        if (!isOver) this.#watchers -= 1;
        isOver = true;
      },
    };
  }

  /** Returns when all denials before the call were reported. Never rejects. Concurrent calls share one poll. */
  async look(): Promise<void> {
    if (!this.#isOpen) return;
    if (this.#looking === null) return await this.#begin();
    // A running poll may have read the counters already.
    this.#next ??= this.#looking.then(() => {
      this.#next = null;
      return this.#begin();
    });
    await this.#next;
  }

  #begin(): Promise<void> {
    this.#looking = this.#lookNow().finally(() => (this.#looking = null));
    return this.#looking;
  }

  async #lookNow(): Promise<void> {
    const { instance, onDenied, logger } = this.#options;
    try {
      for (const denied of await takeDeniedPackets(instance))
        onDenied(denied.hostInterface, { decisions: denied.places, leftOut: this.#leftOut(denied) });
    } catch (error) {
      if (this.#isOpen) logger.warn({ error }, 'What the packet filter denied could not be read');
    }
  }

  /** Reported packets that the counter does not have yet are subtracted at the next poll; names of interfaces are never reused. */
  #leftOut({ hostInterface, packets, places }: DeniedPackets): number {
    const ahead = places.reduce((sum, { count }) => sum + count, 0);
    const left = packets - ahead - (this.#ahead.get(hostInterface) ?? 0);
    if (left < 0) this.#ahead.set(hostInterface, -left);
    else this.#ahead.delete(hostInterface);
    return Math.max(0, left);
  }

  #plan(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    if (!this.#isOpen) return;
    this.#timer = setTimeout(
      () => {
        const looked = this.#options.isNeeded() ? this.look() : Promise.resolve();
        void looked.then(() => this.#plan());
      },
      this.#watchers > 0 ? WATCHED_MS : CALM_MS,
    ).unref();
  }
}
