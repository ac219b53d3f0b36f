import { statSync } from 'node:fs';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { PlatformError } from '@svc/contract/errors';
import { Value } from 'typebox/value';
import { READINGS, Refusal, type ArchiveReading, type ReadingTask } from './archive-reading.ts';
import { killGroup, outcomeOf, spawnConfined } from './confined-command.ts';
import { drained } from './drained.ts';
import { refused } from './image-failures.ts';
import type { ImageLimits } from './image-limits.ts';

/** Built by `make build`. */
export const BUILT_ARCHIVE_PROGRAM = fileURLToPath(
  new URL('../../build/archive-program.js', import.meta.url),
);
const NODE = '/.svc-node';
const PROGRAM = '/.svc-archives.js';

/** Enough for the names of a million files; an archive that needs more crashes its own process. */
const MAX_HEAP_MIB = 512;
/** Bounds the answer: names of opaque folders, or of the files of an archive. */
const MAX_ANSWER_BYTES = 16 * 1024 ** 2;
/** Exit code of the shell and bubblewrap for SIGABRT, with which Node ends when its heap is full. */
const ABORTED = 134;

/**
 * A process that reads the headers of one archive, without privileges: it has no capability, no network, and sees no file of the host but
 * programs. It ends with its archive, so an archive that takes it over cannot reach another one. Its answers are not trusted: they are
 * validated, and the parent computes the digest and the size of what it read.
 */
export class ArchiveProcess<Task extends ReadingTask> implements Disposable {
  readonly stdout: Readable;
  readonly #task: Task;
  readonly #stdin: Writable;
  readonly #child: ReturnType<typeof spawnConfined>;
  readonly #ended: ReturnType<typeof outcomeOf>;

  /** `program` replaces it in tests. */
  constructor(task: Task, limits: ImageLimits, signal: AbortSignal, program = BUILT_ARCHIVE_PROGRAM) {
    this.#task = task;
    this.#child = start(program, task, limits);
    this.stdout = this.#child.stdout;
    this.#stdin = this.#child.stdin;
    // Its own answer says why it stopped reading.
    this.#stdin.on('error', () => {});
    this.#ended = outcomeOf(this.#child, signal, MAX_ANSWER_BYTES);
    // Awaited by `answer`.
    this.#ended.catch(() => {});
  }

  /** Sends it the archive. @returns whether it read all of it */
  async feed(archive: AsyncIterable<Buffer>): Promise<boolean> {
    for await (const chunk of archive) {
      if (this.#stdin.destroyed) return false;
      if (!this.#stdin.write(chunk)) await drained(this.#stdin);
    }
    this.#stdin.end();
    return true;
  }

  /** Its answer after it has read what it needs. */
  async answer(): Promise<ArchiveReading[Task]> {
    const { code, stderr } = await this.#ended;
    if (code === ABORTED) throw refused('a layer lists more files than fit into memory');
    // Node may have printed warnings before the answer.
    const said = code === 0 ? parse(stderr.slice(stderr.lastIndexOf('\n') + 1)) : null;
    if (said !== null && 'refusal' in said && Value.Check(Refusal, said.refusal))
      throw new PlatformError('invalid_image', said.refusal.message, {
        details: said.refusal.details ?? {},
      });
    // TypeScript cannot relate the generic task to its schema, which is the one of the task.
    const schema: (typeof READINGS)[ReadingTask] = READINGS[this.#task];
    if (said !== null && 'output' in said && Value.Check(schema, said.output))
      return said.output as ArchiveReading[Task];
    throw new Error(`the process that reads archives ended with ${code}: ${stderr.slice(-500).trim()}`);
  }

  [Symbol.dispose](): void {
    killGroup(this.#child);
  }
}

function start(program: string, task: ReadingTask, limits: ImageLimits): ReturnType<typeof spawnConfined> {
  const programs = [
    { host: process.execPath, inside: NODE },
    { host: program, inside: PROGRAM },
  ];
  return spawnConfined({
    command: [
      NODE,
      `--max-old-space-size=${MAX_HEAP_MIB}`,
      PROGRAM,
      task,
      JSON.stringify(limits),
      `${MAX_ANSWER_BYTES}`,
    ],
    programs: programs.filter(({ host }) => isForEverybody(host)),
    // Folders that only root can read: mapped so that root of the user namespace owns them.
    folders: programs
      .filter(({ host }) => !isForEverybody(host))
      .map((program) => ({ ...program, writable: false })),
    workdir: '/',
    capabilities: [],
    ids: 'own',
    network: 'none',
    environment: {},
  });
}

function isForEverybody(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found !== undefined) return (found.mode & 0o004) !== 0;
  throw new PlatformError('unavailable', 'The program that reads archives is not built; run `make build`');
}

function parse(text: string): object | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' ? value : null;
  } catch {
    // The caller reports the failure.
    return null;
  }
}
