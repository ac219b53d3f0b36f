import type { Blocking } from './secret-settings.ts';

/** What is told about a request that was stopped: never a value, and no query. */
export interface Violation {
  readonly action: Blocking;
  readonly method: string;
  readonly host: string;
  readonly path: string;
  /** Whose placeholders were seen; none when the request was stopped for another reason. */
  readonly envVars: readonly string[];
}

/** Stops a request on its way. It stays inside the proxy. */
export class BlockedRequest extends Error {
  readonly violation: Violation;

  constructor(violation: Violation) {
    super('The request was stopped');
    this.violation = violation;
  }
}
