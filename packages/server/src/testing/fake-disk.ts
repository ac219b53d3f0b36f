import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Database } from '../store/database.ts';
import { LogOnDisk } from '../store/log-on-disk.ts';
import { openStore } from '../store/open-store.ts';
import { sqliteDialect } from '../store/sqlite.ts';
import { makeFolder } from './test-server.ts';

/** A store whose fsync the test controls. The fsync is released before cleanups after the test wait for it. */
export async function openOnFakeDisk(
  t: TestContext,
): Promise<{ readonly database: Database; readonly disk: FakeDisk }> {
  const path = join(await makeFolder(t), 'store.db');
  const disk = new FakeDisk();
  const database = await openStore(sqliteDialect(path, new LogOnDisk(path, disk.flush)));
  t.after(() => disk.letGo());
  return { database, disk };
}

export class FakeDisk {
  turns = 0;
  #gate = Promise.withResolvers<void>();
  #error: Error | undefined;

  constructor() {
    this.#gate.resolve();
  }

  readonly flush = async (): Promise<void> => {
    this.turns++;
    await this.#gate.promise;
    if (this.#error !== undefined) throw this.#error;
  };

  hold(): void {
    this.#gate = Promise.withResolvers<void>();
  }

  letGo(): void {
    this.#gate.resolve();
  }

  async isAsked(): Promise<void> {
    while (this.turns === 0) await new Promise(setImmediate);
  }

  fail(error: Error | undefined): void {
    this.#error = error;
  }
}
