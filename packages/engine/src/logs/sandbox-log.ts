import {
  closeSync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { EventEmitter, on } from 'node:events';
import type { LogEntry, LogSource, ReadLogs } from '../client/engine-api.ts';
import { decodeCursor, encodeCursor, type LogPlace } from './log-cursor.ts';
import { encodeData, textOf, type LogLine } from './log-line.ts';

const MAX_FILE_BYTES = 10 * 1024 * 1024;
const KEPT_FILES = 3;
const DEFAULT_SOURCES: readonly LogSource[] = ['stdout', 'stderr', 'output'];

/**
 * The log of one sandbox: JSON lines in numbered files of 10 MiB, the newest three kept.
 * A line that was cut off by a crash is removed when the log is opened again.
 */
export class SandboxLog {
  readonly #folder: string;
  readonly #maxFileBytes: number;
  readonly #grew = new EventEmitter<{ grew: [] }>().setMaxListeners(0);
  #generation: number;
  #descriptor: number;
  #size: number;

  private constructor(folder: string, maxFileBytes: number) {
    this.#folder = folder;
    this.#maxFileBytes = maxFileBytes;
    this.#generation = generations(folder).at(-1) ?? 1;
    this.#descriptor = openSync(this.#file(this.#generation), 'a+', 0o600);
    this.#size = fstatSync(this.#descriptor).size;
  }

  static async open(folder: string, options: { readonly maxFileBytes?: number } = {}): Promise<SandboxLog> {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const log = new SandboxLog(folder, options.maxFileBytes ?? MAX_FILE_BYTES);
    await log.#repair();
    return log;
  }

  system(text: string): void {
    this.#write({ t: new Date().toISOString(), s: 'system', d: text });
  }

  /** `offset`: place in the process' stream behind `data`. */
  output(process: string, source: Exclude<LogSource, 'system'>, data: Uint8Array, offset: number): void {
    this.#write({ t: new Date().toISOString(), s: source, ...encodeData(data), id: process, o: offset });
  }

  /** How much of each stream of a process is in the log, found after a restart. */
  async offsetsOf(process: string): Promise<{ stdout: number; stderr: number }> {
    const offsets = { stdout: 0, stderr: 0 };
    for (const generation of generations(this.#folder)) {
      for (const { line } of await this.#linesOf({ generation, offset: 0 })) {
        if (line.id !== process || line.o === undefined || line.s === 'system') continue;
        offsets[line.s === 'stderr' ? 'stderr' : 'stdout'] = line.o;
      }
    }
    return offsets;
  }

  /**
   * What is there, oldest first; with `follow` also what comes, until the log is closed, the signal fires, or `isOver` says
   * that nothing more will come.
   */
  async *read(
    options: ReadLogs,
    signal: AbortSignal,
    isOver: () => boolean = () => false,
  ): AsyncGenerator<LogEntry> {
    const sources = options.sources ?? DEFAULT_SOURCES;
    const grown = on(this.#grew, 'grew', { signal, close: ['error'] });
    try {
      let place = (options.cursor === undefined ? undefined : decodeCursor(options.cursor)) ?? this.#oldest();
      if (options.tail !== undefined) place = await this.#tail(place, options.tail, sources);
      for (;;) {
        // Asked before reading: what was written until then is still read.
        const isLast = options.follow !== true || isOver() || this.#descriptor < 0;
        for (const { line, next } of await this.#linesFrom(place)) {
          place = next;
          if (sources.includes(line.s)) yield toEntry(line, next);
        }
        if (isLast) return;
        await grown.next();
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      await grown.return?.();
    }
  }

  close(): void {
    if (this.#descriptor < 0) return;
    closeSync(this.#descriptor);
    this.#descriptor = -1;
    this.#grew.emit('grew');
  }

  #write(line: LogLine): void {
    if (this.#descriptor < 0) return;
    const bytes = Buffer.from(`${JSON.stringify(line)}\n`);
    if (this.#size > 0 && this.#size + bytes.length > this.#maxFileBytes) this.#rotate();
    writeSync(this.#descriptor, bytes);
    this.#size += bytes.length;
    this.#grew.emit('grew');
  }

  #rotate(): void {
    closeSync(this.#descriptor);
    this.#generation += 1;
    this.#descriptor = openSync(this.#file(this.#generation), 'a+', 0o600);
    this.#size = 0;
    for (const old of generations(this.#folder).slice(0, -KEPT_FILES))
      rmSync(this.#file(old), { force: true });
  }

  async #repair(): Promise<void> {
    const bytes = await readFile(this.#file(this.#generation));
    const whole = bytes.lastIndexOf(0x0a) + 1;
    if (whole === bytes.length) return;
    ftruncateSync(this.#descriptor, whole);
    this.#size = whole;
  }

  #oldest(): LogPlace {
    return { generation: generations(this.#folder)[0] ?? this.#generation, offset: 0 };
  }

  async #tail(from: LogPlace, count: number, sources: readonly LogSource[]): Promise<LogPlace> {
    if (count <= 0) return { generation: this.#generation, offset: this.#size };
    const lines = (await this.#linesFrom(from)).filter(({ line }) => sources.includes(line.s));
    return lines.at(-count)?.place ?? from;
  }

  async #linesFrom(place: LogPlace): Promise<PlacedLine[]> {
    const lines: PlacedLine[] = [];
    const known = generations(this.#folder).filter((generation) => generation >= place.generation);
    const first = known[0];
    if (first !== undefined && first > place.generation)
      lines.push(droppedMark({ generation: first, offset: 0 }));
    for (const generation of known) {
      const offset = generation === place.generation ? place.offset : 0;
      for (const line of await this.#linesOf({ generation, offset })) lines.push(line);
    }
    return lines;
  }

  async #linesOf(place: LogPlace): Promise<PlacedLine[]> {
    const { generation, offset } = place;
    const bytes = await readFrom(this.#file(generation), offset);
    const lines: PlacedLine[] = [];
    let start = 0;
    for (let end = bytes.indexOf(0x0a); end >= 0; end = bytes.indexOf(0x0a, start)) {
      const line = parseLine(bytes.toString('utf8', start, end));
      const next = { generation, offset: offset + end + 1 };
      if (line !== undefined) lines.push({ line, place: { generation, offset: offset + start }, next });
      start = end + 1;
    }
    return lines;
  }

  #file(generation: number): string {
    return join(this.#folder, `log-${generation}.jsonl`);
  }
}

interface PlacedLine {
  readonly line: LogLine;
  readonly place: LogPlace;
  readonly next: LogPlace;
}

function generations(folder: string): number[] {
  return readdirSync(folder)
    .map((name) => Number(/^log-(\d+)\.jsonl$/.exec(name)?.[1] ?? Number.NaN))
    .filter((generation) => Number.isSafeInteger(generation))
    .sort((a, b) => a - b);
}

/** Empty when rotation has just taken the file away. */
async function readFrom(path: string, offset: number): Promise<Buffer> {
  const file = await open(path, 'r').catch(() => undefined);
  if (file === undefined) return Buffer.alloc(0);
  try {
    const { size } = await file.stat();
    const bytes = Buffer.allocUnsafe(Math.max(0, size - offset));
    const { bytesRead } = await file.read(bytes, 0, bytes.length, offset);
    return bytes.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

function droppedMark(place: LogPlace): PlacedLine {
  const line = {
    t: new Date().toISOString(),
    s: 'system',
    d: 'older output was dropped by rotation',
  } as const;
  return { line, place, next: place };
}

function parseLine(text: string): LogLine | undefined {
  try {
    // Written by this class; a torn line does not parse.
    return JSON.parse(text) as LogLine;
  } catch {
    return undefined;
  }
}

function toEntry(line: LogLine, next: LogPlace): LogEntry {
  return {
    time: line.t,
    source: line.s,
    text: textOf(line),
    process: line.id ?? null,
    cursor: encodeCursor(next),
  };
}
