import { Notifier } from '@svc/contract/async';
import type {
  NetworkLogEntry,
  NetworkLogLine,
  ReadNetworkLog,
  RefusedConnection,
} from '@svc/contract/orchestrator';

/** What was decided about the network of one fake sandbox: what a test says. */
export class FakeNetworkLog {
  readonly #entries: NetworkLogEntry[] = [];
  readonly #notifier = new Notifier();
  #followers = 0;
  leftOut = 0;

  /** How many wait for more. */
  get followers(): number {
    return this.#followers;
  }

  add(entry: Partial<NetworkLogEntry> = {}): void {
    const time = new Date().toISOString();
    this.#entries.push({
      sequence: this.#entries.length + 1,
      firstTime: time,
      time,
      count: 1,
      kind: 'tcp',
      verdict: 'deny',
      host: null,
      address: '10.0.0.1',
      port: 22,
      protocol: 'tcp',
      decidedBy: 'default',
      rule: null,
      reason: 'a test says so',
      secret: null,
      ...entry,
    });
    this.wake();
  }

  addRefused({ count, ...connection }: RefusedConnection): void {
    this.add({
      kind: 'ingress',
      decidedBy: connection.rule === null ? 'default' : 'rule',
      count,
      ...connection,
    });
  }

  wake(): void {
    this.#notifier.notify();
  }

  async *read(
    { after = 0, verdict, follow = false }: ReadNetworkLog,
    signal: AbortSignal,
    isOver: () => boolean,
  ): AsyncGenerator<NetworkLogLine> {
    let next = after;
    for (;;) {
      const isLast = !follow || isOver();
      for (; next < this.#entries.length; next++) {
        const entry = this.#entries[next];
        if (entry !== undefined && (verdict ?? entry.verdict) === entry.verdict) yield { entry };
      }
      if (isLast || signal.aborted) break;
      this.#followers += 1;
      await this.#notifier.wait(signal).finally(() => (this.#followers -= 1));
    }
    if (this.leftOut > 0) yield { leftOut: this.leftOut };
  }
}
