import type { DatabaseConnection, Driver, QueryCompiler } from 'kysely';
import type { LogOnDisk } from './log-on-disk.ts';

/**
 * One connection behind a mutex. Commits resolve after fsync; during the fsync the connection serves other callers,
 * which may see the change already.
 */
export class SqliteDriver implements Driver {
  readonly #driver: Driver;
  readonly #takeChange: () => boolean;
  readonly #log: LogOnDisk;
  #last: Promise<void> = Promise.resolve();
  #unlock: () => void = () => undefined;
  #listener: (() => void) | undefined;

  /** `takeChange` says whether anything was committed since its last call. */
  constructor(driver: Driver, takeChange: () => boolean, log: LogOnDisk) {
    this.#driver = driver;
    this.#takeChange = takeChange;
    this.#log = log;
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    const before = this.#last;
    const turn = Promise.withResolvers<void>();
    this.#last = turn.promise;
    await before;
    this.#unlock = turn.resolve;
    return await this.#driver.acquireConnection();
  }

  /** Calls `listener` when the transaction in progress is committed, before fsync. */
  whenCommitted(listener: () => void): void {
    this.#listener = listener;
  }

  async releaseConnection(): Promise<void> {
    const isChanged = this.#takeChange();
    const listener = this.#listener;
    this.#listener = undefined;
    this.#unlock();
    const onDisk = isChanged ? this.#log.hasAll() : undefined;
    listener?.();
    await onDisk;
  }

  async init(): Promise<void> {
    await this.#driver.init();
  }

  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await this.#driver.beginTransaction(connection, {});
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await this.#driver.commitTransaction(connection);
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    this.#listener = undefined;
    await this.#driver.rollbackTransaction(connection);
  }

  async savepoint(
    connection: DatabaseConnection,
    name: string,
    compile: QueryCompiler['compileQuery'],
  ): Promise<void> {
    await this.#driver.savepoint?.(connection, name, compile);
  }

  async rollbackToSavepoint(
    connection: DatabaseConnection,
    name: string,
    compile: QueryCompiler['compileQuery'],
  ): Promise<void> {
    await this.#driver.rollbackToSavepoint?.(connection, name, compile);
  }

  async releaseSavepoint(
    connection: DatabaseConnection,
    name: string,
    compile: QueryCompiler['compileQuery'],
  ): Promise<void> {
    await this.#driver.releaseSavepoint?.(connection, name, compile);
  }

  async destroy(): Promise<void> {
    await this.#log[Symbol.asyncDispose]();
    await this.#driver.destroy();
  }
}
