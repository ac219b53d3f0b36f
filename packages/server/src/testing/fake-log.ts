import { EventEmitter, once } from 'node:events';
import { PlatformError } from '@svc/contract';
import type { LogEntry, LogSource, ReadLogs } from '@svc/contract/orchestrator';

const DEFAULT_SOURCES: readonly LogSource[] = ['stdout', 'stderr', 'output'];

/** The log of one fake sandbox, in memory. */
export class FakeLog {
  readonly #entries: LogEntry[] = [];
  readonly #changes = new EventEmitter().setMaxListeners(0);
  #version = 0;

  /** How many followers wait for an entry. */
  get followers(): number {
    return this.#changes.listenerCount('change');
  }

  add(source: LogSource, text: string): void {
    const process = source === 'system' ? null : 'main';
    const cursor = encodeCursor(this.#entries.length + 1);
    this.#entries.push({ time: new Date().toISOString(), source, text, process, cursor });
    this.#version += 1;
    this.#changes.emit('change');
  }

  /** Every change of a state adds an entry, so that followers check again whether the run is over. */
  async *read(options: ReadLogs, signal: AbortSignal, isOver: () => boolean): AsyncGenerator<LogEntry> {
    const sources = options.sources ?? DEFAULT_SOURCES;
    let next = options.cursor === undefined ? 0 : decodeCursor(options.cursor);
    if (options.tail !== undefined) {
      const places = [...this.#entries.keys()].filter((place) => this.#isOf(place, sources));
      next = Math.max(next, options.tail === 0 ? this.#entries.length : (places.at(-options.tail) ?? 0));
    }
    for (;;) {
      const version = this.#version;
      const isLast = options.follow !== true || isOver();
      for (; next < this.#entries.length; next++) {
        const entry = this.#entries[next];
        if (entry !== undefined && this.#isOf(next, sources)) yield entry;
      }
      if (isLast) return;
      if (this.#version === version) await once(this.#changes, 'change', { signal });
    }
  }

  #isOf(place: number, sources: readonly LogSource[]): boolean {
    const source = this.#entries[place]?.source;
    return source !== undefined && sources.includes(source);
  }
}

/** In the engine's form: a count of 1, a generation, an offset. */
function encodeCursor(place: number): string {
  const bytes = Buffer.alloc(17);
  bytes.writeUInt8(1, 0);
  bytes.writeBigUInt64LE(1n, 1);
  bytes.writeBigUInt64LE(BigInt(place), 9);
  return bytes.toString('base64');
}

function decodeCursor(cursor: string): number {
  if (cursor === 'AA==') return 0;
  const bytes = Buffer.from(cursor, 'base64');
  if (bytes.length === 17 && bytes[0] === 1) return Number(bytes.readBigUInt64LE(9));
  throw new PlatformError('invalid_cursor', 'cursor: use the cursor of an earlier entry, unchanged', {
    details: { field: 'cursor' },
  });
}
