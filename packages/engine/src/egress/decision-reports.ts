import type { NetworkDecision } from '@svc/contract/orchestrator';
import type { NetworkReport } from '../policy/network-decision.ts';

/** Reports per second for one sandbox, of denied and of allowed traffic each. */
const MAX_DENIED_PER_SECOND = 10;
const MAX_ALLOWED_PER_SECOND = 5;
/** Reports per second for all sandboxes of one scope: the engine, which receives them, serves all scopes. */
const MAX_PER_SECOND_OF_SCOPE = 200;
/** Sandboxes choose names and paths; longer ones are truncated. */
const MAX_TEXT = 1000;
/** Interval for repeated reports of the same allowed traffic. */
const SAMPLE_MS = 60_000;
const MAX_SAMPLED = 256;

interface ReportCounts {
  second: number;
  denied: number;
  allowed: number;
  /** Number of denials that were not reported yet. */
  leftOut: number;
  /** Recently allowed traffic, and when it was reported. */
  readonly sampled: Map<string, number>;
}

/** Reports decisions to the engine, rate-limited. Sandboxes are identified by their address. */
export class DecisionReports {
  readonly #report: (client: string, report: NetworkReport) => void;
  readonly #scopeOf: (client: string) => string;
  readonly #counts = new Map<string, ReportCounts>();
  /** Reports of each scope in this second. */
  readonly #ofScopes = new Map<string, number>();
  #second = 0;

  /** `scopeOf`: the scope of a sandbox; default: one for all. */
  constructor(
    report: (client: string, report: NetworkReport) => void,
    scopeOf: (client: string) => string = () => '',
  ) {
    this.#report = report;
    this.#scopeOf = scopeOf;
  }

  /** `isNeeded`: the engine has to act on it, so it is never dropped. */
  denied(client: string, decision: NetworkDecision, isNeeded = false): void {
    const counts = this.#of(client);
    counts.denied += 1;
    if (!isNeeded && (counts.denied > MAX_DENIED_PER_SECOND || this.#isScopeLoud(client))) {
      counts.leftOut += 1;
      return;
    }
    this.#send(client, decision, counts.leftOut);
    counts.leftOut = 0;
  }

  /** Names repeat, so most calls end with one lookup in a map. */
  allowed(client: string, decision: NetworkDecision): void {
    const counts = this.#of(client);
    const { kind, host, address, port } = decision;
    const key = `${kind} ${host} ${address} ${port}`;
    const now = performance.now();
    const before = counts.sampled.get(key);
    if ((before !== undefined && now - before < SAMPLE_MS) || counts.allowed >= MAX_ALLOWED_PER_SECOND)
      return;
    if (this.#isScopeLoud(client)) return;
    counts.allowed += 1;
    counts.sampled.delete(key);
    counts.sampled.set(key, now);
    const [oldest] = counts.sampled.keys();
    if (counts.sampled.size > MAX_SAMPLED && oldest !== undefined) counts.sampled.delete(oldest);
    this.#send(client, decision, 0);
  }

  /** The sandbox is gone; the next one with its address is another one. */
  forget(client: string): void {
    this.#counts.delete(client);
  }

  #send(client: string, decision: NetworkDecision, leftOut: number): void {
    const scope = this.#scopeOf(client);
    this.#ofScopes.set(scope, (this.#ofScopes.get(scope) ?? 0) + 1);
    this.#report(client, { decisions: [{ decision: shortened(decision), count: 1 }], leftOut });
  }

  #isScopeLoud(client: string): boolean {
    const second = Math.floor(performance.now() / 1000);
    if (this.#second !== second) this.#ofScopes.clear();
    this.#second = second;
    return (this.#ofScopes.get(this.#scopeOf(client)) ?? 0) >= MAX_PER_SECOND_OF_SCOPE;
  }

  #of(client: string): ReportCounts {
    const second = Math.floor(performance.now() / 1000);
    const counts = this.#counts.get(client) ?? {
      second,
      denied: 0,
      allowed: 0,
      leftOut: 0,
      sampled: new Map(),
    };
    this.#counts.set(client, counts);
    if (counts.second !== second) Object.assign(counts, { second, denied: 0, allowed: 0 });
    return counts;
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
