import type { ErrorCode } from '@svc/contract';
import type { RestOperationName } from '@svc/contract/rest';
import type { Call, Reply, Way, World } from './world.ts';

/** What an operation may end in: what it is for, or an error that the table lists for it. */
export type OutcomeName = 'ok' | ErrorCode;

export interface Outcome {
  readonly operation: RestOperationName;
  readonly outcome: OutcomeName;
  /** On whose address; absent: on each that the operation has. */
  readonly only: Way | undefined;
  /** Brings the outcome about and returns the answer, which is then compared with the table. */
  readonly run: (call: Call, world: World, way: Way) => Promise<Reply>;
}

type Act = (world: World) => Promise<void>;

/** A stretch of time in which something holds, such as "the engine is away". */
export interface Phase {
  readonly title: string;
  readonly enter: Act | undefined;
  readonly leave: Act | undefined;
  readonly outcomes: Outcome[];
}

/** When the engine goes away it does so once, for all who declare something about it. */
interface Outage extends Phase {
  /** While the engine is still there; `enter` follows when it is not, and `leave` when it is back. */
  readonly prepare: Act | undefined;
}

interface Acts {
  readonly enter?: Act;
  readonly leave?: Act;
}

/**
 * Outcomes of the control plane that share a server and an engine. They are declared here and run by `runOutcomes`; that
 * every outcome of the table is declared somewhere is checked without running any of them.
 */
export class Outcomes {
  readonly phases: Phase[] = [];
  readonly outages: Outage[] = [];
  readonly aftermath: Phase[] = [];
  #current: Phase | undefined;

  /** What is declared from here on happens after `enter` and before `leave`; after an outage when one was declared before. */
  phase(title: string, { enter, leave }: Acts = {}): void {
    this.#current = { title, enter, leave, outcomes: [] };
    (this.outages.length === 0 ? this.phases : this.aftermath).push(this.#current);
  }

  /** What is declared from here on happens while the engine is away. */
  outage(title: string, { prepare, enter, leave }: Acts & { readonly prepare?: Act } = {}): void {
    const outage = { title, prepare, enter, leave, outcomes: [] };
    this.#current = outage;
    this.outages.push(outage);
  }

  get all(): readonly Outcome[] {
    return [...this.phases, ...this.outages, ...this.aftermath].flatMap(({ outcomes }) => outcomes);
  }

  add(operation: RestOperationName, outcome: OutcomeName, run: Outcome['run'], only?: Way): void {
    if (this.#current === undefined) throw new Error('begin a phase first');
    this.#current.outcomes.push({ operation, outcome, run, only });
  }
}
