import type { NetworkDecision, NetworkReport } from '../policy/network-decision.ts';

/** Of one sandbox. One that breaks a rule again and again is told of so often a second, and no more; so is what it may do. */
const MAX_DENIED_PER_SECOND = 10;
const MAX_ALLOWED_PER_SECOND = 5;
/** What is allowed is told once in this time. */
const SAMPLE_MS = 60_000;
const MAX_SAMPLED = 256;

interface Told {
  second: number;
  denied: number;
  allowed: number;
  /** What was denied and not told of yet. */
  leftOut: number;
  /** What was allowed lately, and when that was told. */
  readonly sampled: Map<string, number>;
}

/** Tells the engine a bounded part of what is decided here. Sandboxes are told apart by their address. */
export class ToldDecisions {
  readonly #send: (client: string, report: NetworkReport) => void;
  readonly #told = new Map<string, Told>();

  constructor(send: (client: string, report: NetworkReport) => void) {
    this.#send = send;
  }

  /** `isNeeded`: something has to be done about it, so it is never left out. */
  denied(client: string, decision: NetworkDecision, isNeeded = false): void {
    const told = this.#of(client);
    told.denied += 1;
    if (told.denied > MAX_DENIED_PER_SECOND && !isNeeded) {
      told.leftOut += 1;
      return;
    }
    this.#send(client, { decisions: [{ decision, count: 1 }], leftOut: told.leftOut });
    told.leftOut = 0;
  }

  /** Names come again and again, so most of these end with a look into a map. */
  allowed(client: string, decision: NetworkDecision): void {
    const told = this.#of(client);
    const { kind, host, address, port } = decision;
    const key = `${kind} ${host} ${address} ${port}`;
    const now = performance.now();
    const before = told.sampled.get(key);
    if ((before !== undefined && now - before < SAMPLE_MS) || told.allowed >= MAX_ALLOWED_PER_SECOND) return;
    told.allowed += 1;
    told.sampled.delete(key);
    told.sampled.set(key, now);
    const [oldest] = told.sampled.keys();
    if (told.sampled.size > MAX_SAMPLED && oldest !== undefined) told.sampled.delete(oldest);
    this.#send(client, { decisions: [{ decision, count: 1 }], leftOut: 0 });
  }

  /** The sandbox is gone; the next to have its address is another. */
  forget(client: string): void {
    this.#told.delete(client);
  }

  #of(client: string): Told {
    const second = Math.floor(performance.now() / 1000);
    const told = this.#told.get(client) ?? { second, denied: 0, allowed: 0, leftOut: 0, sampled: new Map() };
    this.#told.set(client, told);
    if (told.second !== second) Object.assign(told, { second, denied: 0, allowed: 0 });
    return told;
  }
}
