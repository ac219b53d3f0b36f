import { isErrno } from '@svc/contract/errno';
import type { SandboxState } from '@svc/contract/orchestrator';
import { Journal } from './journal.ts';
import type { Kit } from './kit.ts';
import type { EngineRecord } from './record.ts';
import { assertMove } from './states.ts';

/** The record of one sandbox in memory and on disk; changes of its state are logged and announced as events. */
export class StoredRecord {
  readonly journal: Journal;
  readonly #kit: Pick<Kit, 'records' | 'events' | 'logger'>;
  #value: EngineRecord;
  #isUnsaved = false;
  /** A start or an end that was under way must not write the record again: the removed sandbox would be back. */
  #isRemoved = false;

  constructor(kit: Pick<Kit, 'records' | 'events' | 'logger'>, value: EngineRecord) {
    this.#kit = kit;
    this.#value = value;
    const folder = kit.records.folderOf(value.handle);
    this.journal = new Journal(folder, () => this.#value.spec.runtime?.log_level);
  }

  get value(): EngineRecord {
    return this.#value;
  }

  /** The end of a run could not be written to disk. */
  get isUnsaved(): boolean {
    return this.#isUnsaved;
  }

  get isRemoved(): boolean {
    return this.#isRemoved;
  }

  /** Changes the state: checked, saved, logged and announced. */
  async move(to: SandboxState, change: Partial<EngineRecord>, reason: string | null = null): Promise<void> {
    const { id, handle, state } = this.#value;
    assertMove(id ?? handle, state, to);
    await this.save({ ...this.#value, ...change, state: to });
    if (this.#isRemoved) return;
    await this.journal.open();
    this.journal.note(to === 'failed' ? 'error' : 'info', reason === null ? to : `${to}: ${reason}`);
    if (id !== null) this.#kit.events.add(to, id, reason);
  }

  /** A full disk refuses a start; it does not hold up an end, which is written later. */
  async save(value: EngineRecord): Promise<void> {
    const { logger } = this.#kit;
    try {
      await this.#write(value);
      this.#isUnsaved = false;
    } catch (error) {
      if (value.state === 'starting' || value.state === 'running') throw error;
      if (!this.#isUnsaved)
        logger.error({ error, handle: value.handle }, 'the end of a run is not on disk yet');
      this.#isUnsaved = true;
    }
    this.#value = value;
  }

  /** As `save`, for a run that goes on. @throws when it cannot be written */
  append(value: EngineRecord): void {
    const { records, logger } = this.#kit;
    if (!this.#isRemoved)
      records.append(value, (error) => logger.warn({ error }, 'a record could not be rewritten'));
    this.#value = value;
  }

  async #write(value: EngineRecord): Promise<void> {
    try {
      this.append(value);
    } catch (error) {
      // Its folder was removed by hand.
      if (!isErrno(error, 'ENOENT')) throw error;
      await this.#kit.records.write(value, { durable: false });
    }
  }

  remove(): void {
    this.#isRemoved = true;
    this.journal.close();
    this.#kit.records.remove(this.#value.handle);
  }
}
