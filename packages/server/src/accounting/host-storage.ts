import { PlatformError } from '@svc/contract';
import type { OfNode, SpaceView } from '@svc/contract/orchestrator';
import type { Logger } from 'pino';
import type { BackgroundTask } from '../tasks/background.ts';
import { repeatEvery } from '../tasks/background.ts';
import type { Nodes } from '../orchestrator/nodes.ts';
import type { Database } from '../store/database.ts';
import { findOwned } from '../store/owned-names.ts';

const LOOK_MS = 1000;
const TIMEOUT_MS = 2000;
/** How many of the largest users of space an error lists. */
const LISTED_USERS = 10;
const USERS_IN_SENTENCE = 3;
const GIB = 1024 ** 3;

export interface HostStorageParts {
  readonly nodes: Nodes;
  readonly database: Database;
  readonly logger: Logger;
}

/** Measures the free space of the disks of sandboxes once a second, and refuses calls that take space while it is short. */
export class HostStorage {
  readonly #parts: HostStorageParts;
  #latest: readonly OfNode<SpaceView>[] = [];

  constructor(parts: HostStorageParts) {
    this.#parts = parts;
  }

  /** Of each node that answers; empty while the engine has not been asked, or is away. */
  get latest(): readonly OfNode<SpaceView>[] {
    return this.#latest;
  }

  /** Why no disk can be written to; null: one can, or the engine is away. */
  get problem(): string | null {
    return this.#latest.every(({ fault }) => fault !== null) ? (this.#latest[0]?.fault ?? null) : null;
  }

  task(): BackgroundTask {
    const { logger } = this.#parts;
    return repeatEvery(LOOK_MS, 'looking at the space of the host', () => this.#look(), logger);
  }

  /**
   * For calls that take space. A caller who was refused may have made room since, so a shortage is measured again.
   * @throws PlatformError `insufficient_storage`
   */
  async require(): Promise<void> {
    if (!this.#isShort) return;
    await this.#look();
    const [first] = this.#latest;
    if (first === undefined || !this.#isShort) return;
    const { freeBytes, reserveBytes } = first;
    throw new PlatformError('insufficient_storage', SHORT, { details: { freeBytes, reserveBytes } });
  }

  /** Adds to a shortage the largest users of space within the caller's organization. @returns the error to throw instead */
  async explain(error: unknown, organizationId: string): Promise<unknown> {
    if (!PlatformError.is(error, 'insufficient_storage')) return error;
    const users = await ifThere(this.#parts.nodes.storageUsers(AbortSignal.timeout(TIMEOUT_MS)));
    if (users === undefined) return error;
    const names = await findOwned(this.#parts.database, organizationId);
    const own = users.flatMap(({ kind, id, bytes }) => {
      const name = names.get(`${kind} ${id}`);
      return name === undefined ? [] : [{ kind, id, name, bytes }];
    });
    const usedBytes = own.reduce((sum, { bytes }) => sum + bytes, 0);
    const largest = own
      .slice(0, USERS_IN_SENTENCE)
      .map(({ kind, name, bytes }) => `${kind} ${name} ${inGib(bytes)}`);
    const usage = own.length === 0 ? 'nothing' : `${inGib(usedBytes)}, most of it ${largest.join(', ')}`;
    return new PlatformError('insufficient_storage', `${error.message}. Your organization takes ${usage}`, {
      details: { ...error.details, used_bytes: usedBytes, used_by: own.slice(0, LISTED_USERS) },
      cause: error,
    });
  }

  /** While a node has space, sandboxes are placed there. */
  get #isShort(): boolean {
    return this.#latest.length > 0 && this.#latest.every(({ isShort }) => isShort);
  }

  async #look(): Promise<void> {
    this.#latest = (await ifThere(this.#parts.nodes.storage(AbortSignal.timeout(TIMEOUT_MS)))) ?? [];
  }
}

const SHORT =
  'The disk of the host is nearly full; remove sandboxes, snapshots or volumes that are not needed, or have its operator free some';

function inGib(bytes: number): string {
  return `${(bytes / GIB).toFixed(2)} GiB`;
}

/** Undefined while the engine is away, which the engine's health check logs. */
async function ifThere<Answer>(asked: Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (!PlatformError.is(error) && !isTimeout(error)) throw error;
    return undefined;
  }
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && (error.name === 'TimeoutError' || error.name === 'AbortError');
}
