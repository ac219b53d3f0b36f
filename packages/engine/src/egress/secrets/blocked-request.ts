import type { Blocking } from './secret-settings.ts';

/** What is reported about a blocked request: never a value, and no query. */
export interface Violation {
  readonly action: Blocking;
  readonly method: string;
  readonly host: string;
  readonly path: string;
  /** The secrets whose placeholders were found; none when the request was blocked for another reason. */
  readonly envVars: readonly string[];
}

/** Blocks a request. It is not thrown beyond the proxy. */
export class BlockedRequest extends Error {
  readonly violation: Violation;

  constructor(violation: Violation) {
    super('The request was stopped');
    this.violation = violation;
  }
}
