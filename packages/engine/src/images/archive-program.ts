/**
 * The process that reads the headers of archives: it has no rights, see `archive-process.ts`, which starts it for one archive. It gets the
 * archive on its standard input, writes what is to reach the disk to its standard output, and its answer to standard error.
 * `scripts/build-archive-program.ts` makes one file of it.
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
// Our own parent says all three.
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

/** Nothing else is to be done meanwhile, so all of it waits: sockets, which would not, do not exist here. */
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
