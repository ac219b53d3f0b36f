/**
 * The program that reads the headers of one archive, without privileges; `archive-process.ts` starts it. It reads the archive from standard
 * input, writes the entries that may reach the disk to standard output, and its answer to standard error.
 * `scripts/build-archive-program.ts` bundles it into one file.
 */
import { readSync, writeSync } from 'node:fs';
import { PlatformError } from '@svc/contract/errors';
import type { ArchiveAnswer, ArchiveReading, ReadingTask } from './archive-reading.ts';
import { refused } from './image-failures.ts';
import type { ImageLimits } from './image-limits.ts';
import { kindOfTar } from './kind-of-tar.ts';
import { numberFiles } from './number-files.ts';
import { rewriteLayer } from './rewrite-layer.ts';

const [STDIN, STDOUT, STDERR] = [0, 1, 2];
const CHUNK_BYTES = 256 * 1024;

const TASKS: {
  readonly [Task in ReadingTask]: (
    archive: AsyncIterable<Buffer>,
    limits: ImageLimits,
  ) => Promise<ArchiveReading[Task]>;
} = {
  rewrite: (archive, limits) => rewriteLayer(archive, limits, write),
  number: (archive, limits) => numberFiles(archive, limits, write),
  recognize: kindOfTar,
};

const [task, limits, maxAnswerBytes] = process.argv.slice(2);
// The parent process passes all three arguments.
const answer = await answerOf(task as ReadingTask, JSON.parse(limits ?? '') as ImageLimits);
writeAll(STDERR, Buffer.from(JSON.stringify(answer)));

async function answerOf(name: ReadingTask, given: ImageLimits): Promise<ArchiveAnswer> {
  try {
    const output = await TASKS[name](readAll(), given);
    if (JSON.stringify(output).length > Number(maxAnswerBytes) / 2)
      throw refused('it names too many folders');
    return { output };
  } catch (error) {
    if (!PlatformError.is(error, 'invalid_image')) throw error;
    return { refusal: { message: error.message, details: error.details } };
  }
}

/** Blocking reads: the process does nothing else meanwhile, and sockets for non-blocking ones do not exist here. */
async function* readAll(): AsyncGenerator<Buffer> {
  for (;;) {
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    const bytes = readSync(STDIN, chunk);
    if (bytes === 0) return;
    yield chunk.subarray(0, bytes);
  }
}

function write(chunk: Buffer): void {
  writeAll(STDOUT, chunk);
}

function writeAll(descriptor: number, bytes: Buffer): void {
  for (let done = 0; done < bytes.length;) done += writeSync(descriptor, bytes, done);
}
