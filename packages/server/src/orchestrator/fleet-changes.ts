import { setTimeout as delay } from 'node:timers/promises';
import { PlatformError } from '@svc/contract';
import type { NodeChange, ReportedChange } from '@svc/contract/orchestrator';
import { describeAbsence, type FleetMembers, type Member } from './fleet-members.ts';

type Change = ReportedChange | NodeChange | null;

const ASK_TIMEOUT_MS = 10_000;
const FIRST_RETRY_MS = 50;
const LAST_RETRY_MS = 1000;

/** The changes of all nodes. A node that goes away is reported and asked again, until it is back. */
export async function* followFleet(members: FleetMembers, signal: AbortSignal): AsyncGenerator<Change, void> {
  const over = new AbortController();
  const stop = AbortSignal.any([signal, over.signal]);
  const queue = new ChangeQueue();
  const away = new Set<string>();
  const report = (change: Change) => {
    if (change !== null && 'node' in change) {
      if (change.problem === null) away.delete(change.node);
      else away.add(change.node);
    }
    queue.push(change);
  };
  const following = members.all.map(async (member) => await followMember(member, report, stop));
  try {
    for (;;) {
      const change = await queue.next(signal);
      if (signal.aborted) return;
      yield change;
      if (away.size === members.all.length)
        throw new PlatformError('orchestrator_unreachable', 'every node is away');
    }
  } finally {
    over.abort();
    await Promise.all(following);
  }
}

async function followMember(
  { name, ports }: Member,
  report: (change: Change) => void,
  stop: AbortSignal,
): Promise<void> {
  let retryMs = FIRST_RETRY_MS;
  let reported: string | null | undefined;
  const reportOnce = (problem: string | null) => {
    if (problem !== reported) report({ node: name, problem });
    reported = problem;
  };
  while (!stop.aborted) {
    try {
      const { problem } = await ports.nodes.describe(
        AbortSignal.any([stop, AbortSignal.timeout(ASK_TIMEOUT_MS)]),
      );
      const changes = ports.orchestrator.changes(stop)[Symbol.asyncIterator]();
      // Asked for before the node is reported as back, so that no change falls between.
      let next = changes.next();
      next.catch(() => undefined);
      reportOnce(problem);
      retryMs = FIRST_RETRY_MS;
      for (;;) {
        const { value, done } = await next;
        if (done === true) break;
        next = changes.next();
        next.catch(() => undefined);
        report(value);
      }
      if (!stop.aborted) reportOnce(describeAbsence(name, new Error('its engine has stopped')));
    } catch (error) {
      if (!stop.aborted) reportOnce(describeAbsence(name, error));
    }
    await delay(retryMs, undefined, { signal: stop }).catch(() => undefined);
    retryMs = Math.min(retryMs * 2, LAST_RETRY_MS);
  }
}

/** Changes that were not read yet. A sandbox that changes again before it was read is there once; so the queue is bounded by what exists. */
class ChangeQueue {
  readonly #waiting = new Map<string, Change>();
  #wake = Promise.withResolvers<void>();

  push(change: Change): void {
    const key = change === null ? '' : 'node' in change ? `node ${change.node}` : change.id;
    this.#waiting.delete(key);
    this.#waiting.set(key, change);
    this.#wake.resolve();
  }

  /** Null when the signal was aborted. */
  async next(signal: AbortSignal): Promise<Change> {
    const abort = () => this.#wake.resolve();
    signal.addEventListener('abort', abort);
    try {
      for (;;) {
        const first = this.#waiting.entries().next().value;
        if (signal.aborted) return null;
        if (first !== undefined) {
          this.#waiting.delete(first[0]);
          return first[1];
        }
        await this.#wake.promise;
        this.#wake = Promise.withResolvers();
      }
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }
}
