import { Notifier } from '@svc/contract/async';
import type {
  NetworkDecision,
  NetworkLogEntry,
  NetworkLogLine,
  ReadNetworkLog,
} from '@svc/contract/orchestrator';

/** Denied and allowed decisions have a limit each, so that neither evicts the other. */
const MAX_ENTRIES = { deny: 256, allow: 128 } as const;
/** A repeated decision gets a new sequence after this time, with its count. */
const NEW_SEQUENCE_MS = 10_000;
/** And is reported as an event again after this time. */
const NEW_EVENT_MS = 60_000;
const MAX_TEXT = 253;

interface Stored {
  entry: NetworkLogEntry;
  shownAt: number;
  reportedAt: number;
}

/**
 * The network decisions of one sandbox, in memory. Repeated decisions are one entry with a count, so that a sandbox cannot fill the log by
 * repeating a connection. Sequences begin with the time in microseconds and keep growing over a restart of the engine, which begins
 * with an empty log.
 */
export class NetworkLog {
  /** Keys are the fields that repeated decisions share; ordered by sequence. */
  readonly #stored = new Map<string, Stored>();
  readonly #notifier = new Notifier();
  #sequence = Date.now() * 1000;
  #leftOut = 0;

  /** Returns whether this is the first of its kind for a while. */
  note(decision: NetworkDecision, reason: string, count: number): boolean {
    const { kind, verdict, port, protocol, decidedBy, rule, address } = decision;
    const host = decision.host === null ? null : printable(decision.host);
    const secret = decision.secret === undefined ? null : readable(decision.secret);
    const key = JSON.stringify([kind, verdict, host, address, port, protocol, decidedBy, rule, secret]);
    const now = Date.now();
    const time = new Date(now).toISOString();
    const before = this.#stored.get(key);
    if (before !== undefined && now - before.shownAt < NEW_SEQUENCE_MS) {
      before.entry = { ...before.entry, time, count: before.entry.count + count };
      return false;
    }
    this.#sequence += 1;
    const repeated = before === undefined ? { count, firstTime: time } : addedTo(before.entry, count);
    const entry = {
      sequence: this.#sequence,
      time,
      kind,
      verdict,
      host,
      address,
      port,
      protocol,
      decidedBy,
      rule,
      reason: printable(reason, 2 * MAX_TEXT),
      secret,
      ...repeated,
    };
    const isFresh = before === undefined || now - before.reportedAt >= NEW_EVENT_MS;
    this.#stored.delete(key);
    this.#stored.set(key, { entry, shownAt: now, reportedAt: isFresh ? now : before.reportedAt });
    this.#evict(verdict);
    this.#notifier.notify();
    return isFresh;
  }

  /** Counts denials that have no entry. */
  leaveOut(count: number): void {
    if (count === 0) return;
    this.#leftOut += count;
    this.#notifier.notify();
  }

  /** Readers that follow check `isOver` again. */
  wake(): void {
    this.#notifier.notify();
  }

  /** Entries behind `after`, oldest first; with `follow` also new ones, until `isOver`. The number of denials without an entry comes last. */
  async *read(
    { after = 0, verdict, follow = false }: ReadNetworkLog,
    signal: AbortSignal,
    isOver: () => boolean,
  ): AsyncGenerator<NetworkLogLine> {
    // A cursor ahead of our sequence is from before the clock of the host was set back.
    let last = after > this.#sequence ? 0 : after;
    let leftOut = 0;
    while (!signal.aborted) {
      const isLast = !follow || isOver();
      const next = this.#after(last, verdict);
      if (next !== undefined) {
        last = next.sequence;
        yield { entry: next };
      } else if (this.#leftOut > leftOut) {
        leftOut = this.#leftOut;
        yield { leftOut };
      } else if (isLast) return;
      else await this.#notifier.wait(signal);
    }
  }

  #after(sequence: number, verdict: ReadNetworkLog['verdict']): NetworkLogEntry | undefined {
    return this.#stored
      .values()
      .find(({ entry }) => entry.sequence > sequence && (verdict ?? entry.verdict) === entry.verdict)?.entry;
  }

  #evict(verdict: NetworkLogEntry['verdict']): void {
    const same = [...this.#stored].filter(([, { entry }]) => entry.verdict === verdict);
    const [oldest] = same;
    if (oldest === undefined || same.length <= MAX_ENTRIES[verdict]) return;
    this.#stored.delete(oldest[0]);
    if (verdict === 'deny') this.#leftOut += oldest[1].entry.count;
  }
}

function addedTo({ count, firstTime }: NetworkLogEntry, more: number) {
  return { count: count + more, firstTime };
}

function readable({ action, method, path, envVars }: NonNullable<NetworkDecision['secret']>) {
  return { action, method: printable(method), path: printable(path), envVars };
}

/** Sandboxes choose these words, and they are shown on terminals. */
function printable(text: string, length = MAX_TEXT): string {
  const shown = text.replaceAll(/[^\x20-\x7e]/g, '?');
  return shown.length > length ? `${shown.slice(0, length)}…` : shown;
}
