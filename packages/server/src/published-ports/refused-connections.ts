import type { RefusedConnection, RefusedConnections as Refused } from '@svc/contract/orchestrator';
import type { Logger } from 'pino';

/** How long connections are collected before they are reported together. */
const COLLECT_MS = 500;
/** Connections that are listed in one report; the others are only counted. */
const MAX_CONNECTIONS = 16;
const REPORT_TIMEOUT_MS = 10_000;

type ReportRefused = (sandboxId: string, refused: Refused, signal: AbortSignal) => Promise<void>;

interface Collected {
  readonly connections: Map<string, RefusedConnection>;
  leftOut: number;
}

/** Reports connections that published ports refused to the engine, which keeps the log: at most twice a second for each sandbox. */
export class RefusedConnectionLog {
  readonly #report: ReportRefused;
  readonly #logger: Logger;
  readonly #collected = new Map<string, Collected>();

  constructor(report: ReportRefused, logger: Logger) {
    this.#report = report;
    this.#logger = logger;
  }

  note(sandboxId: string, connection: Omit<RefusedConnection, 'count'>): void {
    const collected = this.#collected.get(sandboxId) ?? this.#begin(sandboxId);
    const { address, port, protocol, rule } = connection;
    const key = `${address} ${port} ${protocol} ${rule}`;
    const count = (collected.connections.get(key)?.count ?? 0) + 1;
    if (count === 1 && collected.connections.size >= MAX_CONNECTIONS) collected.leftOut += 1;
    else collected.connections.set(key, { ...connection, count });
  }

  #begin(sandboxId: string): Collected {
    const collected: Collected = { connections: new Map(), leftOut: 0 };
    this.#collected.set(sandboxId, collected);
    setTimeout(() => {
      this.#collected.delete(sandboxId);
      const refused = { connections: [...collected.connections.values()], leftOut: collected.leftOut };
      this.#report(sandboxId, refused, AbortSignal.timeout(REPORT_TIMEOUT_MS)).catch((error: unknown) =>
        // Log entries are lost while the engine is away.
        this.#logger.debug({ sandboxId, err: error }, 'refused connections could not be reported'),
      );
    }, COLLECT_MS).unref();
    return collected;
  }
}
