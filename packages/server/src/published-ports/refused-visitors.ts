import type { RefusedVisitor, RefusedVisitors as Refused } from '@svc/engine/client';
import type { Logger } from 'pino';

/** How long visitors are collected before they are told of together. */
const COLLECT_MS = 500;
/** Different ones, in that time. A flood is a number, not a list. */
const MAX_VISITORS = 16;
const TELL_TIMEOUT_MS = 10_000;

type TellRefused = (sandboxId: string, refused: Refused, signal: AbortSignal) => Promise<void>;

interface Collected {
  readonly visitors: Map<string, RefusedVisitor>;
  leftOut: number;
}

/** Tells the engine, which keeps the log, whom published ports did not let in: twice a second at most for each sandbox. */
export class RefusedVisitors {
  readonly #tell: TellRefused;
  readonly #logger: Logger;
  readonly #collected = new Map<string, Collected>();

  constructor(tell: TellRefused, logger: Logger) {
    this.#tell = tell;
    this.#logger = logger;
  }

  note(sandboxId: string, visitor: Omit<RefusedVisitor, 'count'>): void {
    const collected = this.#collected.get(sandboxId) ?? this.#begin(sandboxId);
    const { address, port, protocol, rule } = visitor;
    const key = `${address} ${port} ${protocol} ${rule}`;
    const count = (collected.visitors.get(key)?.count ?? 0) + 1;
    if (count === 1 && collected.visitors.size >= MAX_VISITORS) collected.leftOut += 1;
    else collected.visitors.set(key, { ...visitor, count });
  }

  #begin(sandboxId: string): Collected {
    const collected: Collected = { visitors: new Map(), leftOut: 0 };
    this.#collected.set(sandboxId, collected);
    setTimeout(() => {
      this.#collected.delete(sandboxId);
      const refused = { visitors: [...collected.visitors.values()], leftOut: collected.leftOut };
      this.#tell(sandboxId, refused, AbortSignal.timeout(TELL_TIMEOUT_MS)).catch((error: unknown) =>
        // It is a log: what cannot be told while the engine is away is not told.
        this.#logger.debug({ sandboxId, err: error }, 'refused visitors could not be told of'),
      );
    }, COLLECT_MS).unref();
    return collected;
  }
}
