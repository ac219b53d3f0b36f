import { open, type FileHandle } from 'node:fs/promises';
import { PlatformError } from '@svc/contract';
import { isErrno } from '@svc/contract/errno';
import { diskFault, failedDisk, findDiskFault } from '@svc/contract/node-disk-fault';

/**
 * Flushes SQLite's write-ahead log with fsync outside the main thread (group commit): all callers that arrive during
 * a flush share the next one.
 */
export class LogOnDisk implements AsyncDisposable {
  readonly #path: string;
  readonly #flush: (log: FileHandle) => Promise<void>;
  #file: Promise<FileHandle> | undefined;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  /** Error of the latest flush; undefined when it succeeded. */
  #fault: PlatformError | undefined;

  constructor(database: string, flush: (log: FileHandle) => Promise<void> = (log) => log.datasync()) {
    this.#path = `${database}-wal`;
    this.#flush = flush;
  }

  /**
   * Resolves when everything that was committed before the call is flushed.
   * @throws when the flush failed: it is unknown then whether the data is on the disk
   */
  async hasAll(): Promise<void> {
    this.#next ??= this.#flushAfter(this.#running);
    await this.#next;
  }

  async #flushAfter(before: Promise<void> | undefined): Promise<void> {
    // Its own callers have received the error.
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

  /** Why the disk cannot be written; undefined: it can. */
  findFault(): PlatformError | undefined {
    return findDiskFault(this.#path, 'server') ?? this.#fault;
  }

  /** The error of a query that failed because of the disk; SQLite does not report the reason. */
  explainFailure(error: unknown): PlatformError {
    return this.findFault() ?? failedDisk('EIO', 'server', error);
  }

  /** The file is opened once: while a connection is open, SQLite restarts the log in the same file. */
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
