import { Notifier } from '@svc/contract/async';
import type { NetworkLogEntry, NetworkLogLine, ReadNetworkLog } from '../client/network-api.ts';
import type { NetworkDecision } from '../policy/network-decision.ts';

/** Of what was denied, and of what was allowed, so that neither pushes the other out. */
const KEPT = { deny: 256, allow: 128 } as const;
/** What happens again is shown again after this time, with its count. */
const SHOWN_AGAIN_MS = 10_000;
/** And told to whoever keeps a record after this. */
const TOLD_AGAIN_MS = 60_000;
const MAX_TEXT = 253;

interface Kept {
  entry: NetworkLogEntry;
  shownAt: number;
  toldAt: number;
}

/**
 * What was decided about the network of one sandbox, in memory. What repeats is one entry with a count, so a sandbox that tries the same
 * again and again fills nothing. Sequences begin with the time in microseconds and keep growing over a restart of the engine, which begins
 * with an empty log.
 */
export class NetworkLog {
  /** By what is the same about repeated decisions; in the order of their sequences. */
  readonly #kept = new Map<string, Kept>();
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
    const before = this.#kept.get(key);
    if (before !== undefined && now - before.shownAt < SHOWN_AGAIN_MS) {
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
    const isFresh = before === undefined || now - before.toldAt >= TOLD_AGAIN_MS;
    this.#kept.delete(key);
    this.#kept.set(key, { entry, shownAt: now, toldAt: isFresh ? now : before.toldAt });
    this.#makeRoom(verdict);
    this.#notifier.notify();
    return isFresh;
  }

  /** What was denied besides. */
  leaveOut(count: number): void {
    if (count === 0) return;
    this.#leftOut += count;
    this.#notifier.notify();
  }

  /** Those who follow look whether it is over. */
  wake(): void {
    this.#notifier.notify();
  }

  /** What is kept behind `after`, oldest first; with `follow` also what comes, until `isOver`. How much was left out comes last. */
  async *read(
    { after = 0, verdict, follow = false }: ReadNetworkLog,
    signal: AbortSignal,
    isOver: () => boolean,
  ): AsyncGenerator<NetworkLogLine> {
    // A place ahead of us is one from before the clock of the host was set back.
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
    return this.#kept
      .values()
      .find(({ entry }) => entry.sequence > sequence && (verdict ?? entry.verdict) === entry.verdict)?.entry;
  }

  #makeRoom(verdict: NetworkLogEntry['verdict']): void {
    const same = [...this.#kept].filter(([, { entry }]) => entry.verdict === verdict);
    const [oldest] = same;
    if (oldest === undefined || same.length <= KEPT[verdict]) return;
    this.#kept.delete(oldest[0]);
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
