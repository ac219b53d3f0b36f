import type { NetworkDecision, NetworkReport } from '../policy/network-decision.ts';

/** Of one sandbox. One that breaks a rule again and again is told of so often a second, and no more; so is what it may do. */
const MAX_DENIED_PER_SECOND = 10;
const MAX_ALLOWED_PER_SECOND = 5;
/** Of all sandboxes of one scope, however many they are: the engine, which hears of it, serves all scopes. */
const MAX_PER_SECOND_OF_SCOPE = 200;
/** Sandboxes choose names and paths; more of them is never shown. */
const MAX_TEXT = 1000;
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
  readonly #tell: (client: string, report: NetworkReport) => void;
  readonly #scopeOf: (client: string) => string;
  readonly #told = new Map<string, Told>();
  /** How many were told of each scope in this second. */
  readonly #ofScopes = new Map<string, number>();
  #second = 0;

  /** `scopeOf`: whose sandbox it is; all are of one scope unless given. */
  constructor(
    tell: (client: string, report: NetworkReport) => void,
    scopeOf: (client: string) => string = () => '',
  ) {
    this.#tell = tell;
    this.#scopeOf = scopeOf;
  }

  /** `isNeeded`: something has to be done about it, so it is never left out. */
  denied(client: string, decision: NetworkDecision, isNeeded = false): void {
    const told = this.#of(client);
    told.denied += 1;
    if (!isNeeded && (told.denied > MAX_DENIED_PER_SECOND || this.#isScopeLoud(client))) {
      told.leftOut += 1;
      return;
    }
    this.#send(client, decision, told.leftOut);
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
    if (this.#isScopeLoud(client)) return;
    told.allowed += 1;
    told.sampled.delete(key);
    told.sampled.set(key, now);
    const [oldest] = told.sampled.keys();
    if (told.sampled.size > MAX_SAMPLED && oldest !== undefined) told.sampled.delete(oldest);
    this.#send(client, decision, 0);
  }

  /** The sandbox is gone; the next to have its address is another. */
  forget(client: string): void {
    this.#told.delete(client);
  }

  #send(client: string, decision: NetworkDecision, leftOut: number): void {
    const scope = this.#scopeOf(client);
    this.#ofScopes.set(scope, (this.#ofScopes.get(scope) ?? 0) + 1);
    this.#tell(client, { decisions: [{ decision: shortened(decision), count: 1 }], leftOut });
  }

  #isScopeLoud(client: string): boolean {
    const second = Math.floor(performance.now() / 1000);
    if (this.#second !== second) this.#ofScopes.clear();
    this.#second = second;
    return (this.#ofScopes.get(this.#scopeOf(client)) ?? 0) >= MAX_PER_SECOND_OF_SCOPE;
  }

  #of(client: string): Told {
    const second = Math.floor(performance.now() / 1000);
    const told = this.#told.get(client) ?? { second, denied: 0, allowed: 0, leftOut: 0, sampled: new Map() };
    this.#told.set(client, told);
    if (told.second !== second) Object.assign(told, { second, denied: 0, allowed: 0 });
    return told;
  }
}

function shortened(decision: NetworkDecision): NetworkDecision {
  const { host, secret } = decision;
  const short = { ...decision, host: host?.slice(0, MAX_TEXT) ?? null };
  if (secret === undefined) return short;
  const { method, path } = secret;
  return {
    ...short,
    secret: { ...secret, method: method.slice(0, MAX_TEXT), path: path.slice(0, MAX_TEXT) },
  };
}
