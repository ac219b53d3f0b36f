import type { Writable } from 'node:stream';
import { PlatformError } from '@svc/contract/errors';
import { ArchiveProcess } from './archive-process.ts';
import type { ArchiveReading, ReadingTask } from './archive-reading.ts';
import { outcomeOf, spawnConfined } from './confined-command.ts';
import { drained } from './drained.ts';
import { refused } from './image-failures.ts';
import type { ImageLimits } from './image-limits.ts';
import { ProgressTimeout, stopDuringWaits } from './progress-timeout.ts';

/** A header of 512 bytes may become three, when its name needs an extended one. */
const MOST_BYTES_PER_BYTE = 4;
/** Two of zeros, that an archive may lack. */
const BLOCKS_AT_END = 1024;
const FINISH_TIMES = 10;

/** The capabilities that tar needs to set owners and modes. A whiteout, the device 0/0, needs none. */
const TAR_CAPABILITIES = ['CAP_CHOWN', 'CAP_DAC_OVERRIDE', 'CAP_FOWNER', 'CAP_FSETID'] as const;

/**
 * Unpacks an archive into an empty folder through two unprivileged programs: one rewrites the headers, tar writes the files. Of the host
 * tar sees this folder alone, and the other program none. This process only copies bytes between them, and parses nothing.
 */
export async function unpackArchive<Task extends Exclude<ReadingTask, 'recognize'>>(
  task: Task,
  archive: (signal: AbortSignal) => AsyncIterable<Buffer>,
  folder: string,
  limits: ImageLimits,
  signal: AbortSignal,
  program?: string,
): Promise<ArchiveReading[Task]> {
  const stop = new AbortController();
  using progress = new ProgressTimeout(limits.maxIdleMs);
  const either = AbortSignal.any([signal, stop.signal, progress.signal]);
  const tar = startTar(folder);
  const reader = new ArchiveProcess(task, limits, either, program);
  const counted = new ByteCount();
  const steps = [
    reader.feed(counted.of(stopDuringWaits(archive(either), progress))),
    carry(reader, tar.stdin, counted, progress),
    tarSucceeds(tar, either),
  ] as const;
  try {
    const [isWhole, answer] = await Promise.all(steps);
    // The digest is of the sent bytes, so all of them have to be read.
    if (!isWhole) throw new Error('the process that reads archives did not read all of one');
    return answer;
  } catch (error) {
    stop.abort(error);
    await Promise.allSettled(steps);
    signal.throwIfAborted();
    progress.signal.throwIfAborted();
    throw error;
  }
}

class ByteCount {
  bytes = 0;

  async *of(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of chunks) {
      this.bytes += chunk.length;
      yield chunk;
    }
  }
}

/** Even a compromised reader writes no more to the disk than its archive could hold, which was bounded before. */
async function carry<Task extends ReadingTask>(
  reader: ArchiveProcess<Task>,
  stdin: Writable,
  read: ByteCount,
  progress: ProgressTimeout,
): Promise<ArchiveReading[Task]> {
  // tar reports itself why it stopped reading.
  stdin.on('error', () => {});
  let bytes = 0;
  for await (const chunk of reader.stdout as AsyncIterable<Buffer>) {
    progress.note();
    bytes += chunk.length;
    if (bytes > MOST_BYTES_PER_BYTE * (read.bytes + BLOCKS_AT_END))
      throw refused('it became larger while it was read');
    if (!stdin.write(chunk) && !stdin.destroyed) await drained(stdin);
  }
  const answer = await reader.answer();
  // tar sets times and modes of folders at the end, and there may be a million.
  progress.resume(FINISH_TIMES);
  stdin.end();
  return answer;
}

function startTar(folder: string): ReturnType<typeof spawnConfined> {
  return spawnConfined({
    command: [
      'tar',
      '--extract',
      '--file=-',
      '--numeric-owner',
      '--same-owner',
      '--preserve-permissions',
      '--xattrs',
      '--xattrs-include=*',
      '--delay-directory-restore',
      '--no-acls',
      '--no-selinux',
    ],
    programs: [],
    folders: [{ host: folder, inside: '/layer', writable: true }],
    workdir: '/layer',
    capabilities: TAR_CAPABILITIES,
    ids: 'own',
    network: 'none',
    environment: {},
  });
}

async function tarSucceeds(tar: ReturnType<typeof startTar>, signal: AbortSignal): Promise<void> {
  tar.stdout.resume();
  const { code, stderr } = await outcomeOf(tar, signal);
  if (code === 0) return;
  if (/No space left on device/.test(stderr)) throw diskFull();
  throw new Error(`tar ended with ${code}: ${stderr.trim().split('\n').slice(0, 3).join('; ')}`);
}

export function diskFull(): PlatformError {
  return new PlatformError(
    'insufficient_storage',
    'The disk that holds images is full; free space with `svc image prune` and try again',
  );
}
