import { open, type FileHandle } from 'node:fs/promises';
import { PlatformError } from '@svc/contract';
import { isErrno } from '@svc/contract/errno';
import { diskFault, failedDisk, findDiskFault } from '@svc/contract/node-disk-fault';

/**
 * Brings SQLite's write-ahead log to the disk beside the thread that everybody is served by. Whoever comes while the disk is at it shares
 * the next turn with all the others who came.
 */
export class LogOnDisk implements AsyncDisposable {
  readonly #path: string;
  readonly #flush: (log: FileHandle) => Promise<void>;
  #file: Promise<FileHandle> | undefined;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  /** How the latest flush failed; undefined when it did not. */
  #fault: PlatformError | undefined;

  constructor(database: string, flush: (log: FileHandle) => Promise<void> = (log) => log.datasync()) {
    this.#path = `${database}-wal`;
    this.#flush = flush;
  }

  /**
   * Ends when what was committed before the call is on the disk.
   * @throws when the disk failed: then nobody knows whether it is
   */
  async hasAll(): Promise<void> {
    this.#next ??= this.#takeTurn(this.#running);
    await this.#next;
  }

  async #takeTurn(before: Promise<void> | undefined): Promise<void> {
    // Those who waited for it have been told how it ended.
    await before?.catch(() => undefined);
    this.#running = this.#next;
    this.#next = undefined;
    try {
      await this.#flush(await this.#open());
      this.#fault = undefined;
    } catch (error) {
      this.#fault = diskFault(error, 'server');
      throw this.#fault ?? explain(error);
    }
  }

  /** Why the disk takes no writes; undefined: it takes them. */
  findFault(): PlatformError | undefined {
    return findDiskFault(this.#path, 'server') ?? this.#fault;
  }

  /** What to show of a query whose disk failed, as the database says without the reason. */
  explainFailure(error: unknown): PlatformError {
    return this.findFault() ?? failedDisk('EIO', 'server', error);
  }

  /** The same file for as long as a connection to the database is open: SQLite writes it anew from its beginning. */
  async #open(): Promise<FileHandle> {
    this.#file ??= open(this.#path).catch((error: unknown) => {
      this.#file = undefined;
      throw error;
    });
    return await this.#file;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await (this.#next ?? this.#running)?.catch(() => undefined);
    await (await this.#file)?.close();
  }
}

function explain(error: unknown): unknown {
  return isErrno(error, 'ENOSPC', 'EDQUOT') ? fullDisk(error) : error;
}

export function fullDisk(cause: unknown): PlatformError {
  const hint = 'the disk of the data directory is full; free some space and try again';
  return new PlatformError('insufficient_storage', hint, { cause });
}
