import { PlatformError } from '@svc/contract/errors';
import { pause } from '@svc/contract/node-pause';
import { sql } from 'kysely';
import type { Logger } from 'pino';
import type { Database } from './database.ts';
import { dialectOf } from './store-dialect.ts';

const LOOK_MS = 2000;

/** Whether the store answers and is writable, as last seen. Checked every two seconds while the server runs. */
export class StoreHealth {
  readonly #database: Database;
  readonly #logger: Logger;
  #problem: string | null = null;

  constructor(database: Database, logger: Logger) {
    this.#database = database;
    this.#logger = logger;
  }

  /** The reason; null: it is healthy. */
  get problem(): string | null {
    return this.#problem;
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const problem = await this.#look();
      if (problem !== null && problem !== this.#problem) this.#logger.error({ problem }, 'the store fails');
      if (problem === null && this.#problem !== null) this.#logger.info('the store is back');
      this.#problem = problem;
      await pause(LOOK_MS, signal);
    }
  }

  async #look(): Promise<string | null> {
    try {
      await sql`select 1`.execute(this.#database);
      return dialectOf(this.#database)?.findFault()?.message ?? null;
    } catch (error) {
      return PlatformError.is(error) ? error.message : 'The database fails; the log of the server says more';
    }
  }
}
