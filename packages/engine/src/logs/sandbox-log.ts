import { Notifier } from '@svc/contract/async';
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
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { LogEntry, LogSource, ReadLogs } from '@svc/contract/orchestrator';
import { decodeCursor, encodeCursor, type LogPlace } from './log-cursor.ts';
import { readLines, type PlacedLine } from './log-file.ts';
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
  /** Readers that have read everything. Woken once, so that one who stopped reading costs nothing. */
  readonly #notifier = new Notifier();
  #version = 0;
  #generation: number;
  #descriptor: number;
  #size: number;
  /** How many lines could not be written since the last one that is there. */
  #missing = 0;
  /** Of the process that wrote last. */
  #latest: { readonly process: string; readonly offsets: Offsets } | undefined;

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
    if (this.#latest?.process !== process) this.#latest = { process, offsets: { stdout: 0, stderr: 0 } };
    const { offsets } = this.#latest;
    const isError = source === 'stderr';
    offsets[isError ? 'stderr' : 'stdout'] = offset;
    const other = isError ? offsets.stdout : offsets.stderr;
    const line = { t: new Date().toISOString(), s: source, ...encodeData(data), id: process, o: offset };
    this.#write(other === 0 ? line : { ...line, x: other });
  }

  /** How much of each stream of a process is in the log; found in its files after a restart. */
  async offsetsOf(process: string): Promise<Offsets> {
    if (this.#latest?.process !== process) {
      const offsets = await this.#findOffsets(process);
      if (offsets !== undefined) this.#latest = { process, offsets };
    }
    return { ...(this.#latest?.process === process ? this.#latest.offsets : { stdout: 0, stderr: 0 }) };
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
    let place = (options.cursor === undefined ? undefined : decodeCursor(options.cursor)) ?? this.#oldest();
    if (options.tail !== undefined) place = await this.#tail(place, options.tail, sources);
    while (!signal.aborted) {
      // Both asked before reading: what was written until then is still read.
      const version = this.#version;
      const isLast = options.follow !== true || isOver() || this.#descriptor < 0;
      for await (const { line, next } of this.#linesFrom(place)) {
        if (signal.aborted) return;
        place = next;
        if (sources.includes(line.s)) yield toEntry(line, next);
      }
      if (isLast) return;
      await this.#changeSince(version, signal);
    }
  }

  close(): void {
    if (this.#descriptor < 0) return;
    closeSync(this.#descriptor);
    this.#descriptor = -1;
    this.#wake();
  }

  async #changeSince(version: number, signal: AbortSignal): Promise<void> {
    if (this.#version !== version || signal.aborted) return;
    await this.#notifier.wait(signal);
  }

  #wake(): void {
    this.#version += 1;
    this.#notifier.notify();
  }

  /** Lines are dropped while the disk is full, which a later line reports; the writer continues. */
  #write(line: LogLine): void {
    if (this.#descriptor < 0) return;
    const lines = this.#missing === 0 ? [line] : [gap(line.t, this.#missing), line];
    const isWritten = this.#append(Buffer.from(lines.map((each) => `${JSON.stringify(each)}\n`).join('')));
    this.#missing = isWritten ? 0 : this.#missing + 1;
    this.#wake();
  }

  /** All of it or nothing; false when the disk does not take it. */
  #append(bytes: Uint8Array): boolean {
    try {
      if (this.#size > 0 && this.#size + bytes.length > this.#maxFileBytes) this.#rotate();
      for (let done = 0; done < bytes.length;) done += writeSync(this.#descriptor, bytes, done);
    } catch {
      ftruncateSync(this.#descriptor, this.#size);
      return false;
    }
    this.#size += bytes.length;
    return true;
  }

  #rotate(): void {
    const next = openSync(this.#file(this.#generation + 1), 'a+', 0o600);
    closeSync(this.#descriptor);
    this.#descriptor = next;
    this.#generation += 1;
    this.#size = 0;
    for (const old of generations(this.#folder).slice(0, -KEPT_FILES))
      rmSync(this.#file(old), { force: true });
  }

  async #repair(): Promise<void> {
    if (this.#size === 0) return;
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
    const places: LogPlace[] = [];
    for await (const { line, place } of this.#linesFrom(from)) {
      if (!sources.includes(line.s)) continue;
      places.push(place);
      // Seldom, because taking from the front moves all the others.
      if (places.length > 2 * count) places.splice(0, places.length - count);
    }
    return places.at(-count) ?? places[0] ?? from;
  }

  async *#linesFrom(place: LogPlace): AsyncGenerator<PlacedLine> {
    const known = generations(this.#folder).filter((generation) => generation >= place.generation);
    const first = known[0];
    if (first !== undefined && first > place.generation) yield droppedMark({ generation: first, offset: 0 });
    for (const generation of known) {
      const offset = generation === place.generation ? place.offset : 0;
      for await (const lines of readLines(this.#file(generation), { generation, offset })) yield* lines;
    }
  }

  async #findOffsets(process: string): Promise<Offsets | undefined> {
    let offsets: Offsets | undefined;
    for await (const { line } of this.#linesFrom(this.#oldest())) {
      if (line.id !== process || line.o === undefined || line.s === 'system') continue;
      const { stdout, stderr } = offsets ?? { stdout: 0, stderr: 0 };
      offsets =
        line.s === 'stderr'
          ? { stdout: line.x ?? stdout, stderr: line.o }
          : { stdout: line.o, stderr: line.x ?? stderr };
    }
    return offsets;
  }

  #file(generation: number): string {
    return join(this.#folder, `log-${generation}.jsonl`);
  }
}

function gap(time: string, count: number): LogLine {
  const text = `lines are missing here: ${count} could not be written, the disk of the host was full`;
  return { t: time, s: 'system', d: text };
}

interface Offsets {
  stdout: number;
  stderr: number;
}

function generations(folder: string): number[] {
  return readdirSync(folder)
    .map((name) => Number(/^log-(\d+)\.jsonl$/.exec(name)?.[1] ?? Number.NaN))
    .filter((generation) => Number.isSafeInteger(generation))
    .sort((a, b) => a - b);
}

function droppedMark(place: LogPlace): PlacedLine {
  const line = {
    t: new Date().toISOString(),
    s: 'system',
    d: 'older output was dropped by rotation',
  } as const;
  return { line, place, next: place };
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
