import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { interleave, type BenchmarkContext, type Measurement } from './benchmark.ts';

const SVC = resolve(import.meta.dirname, '../svc');
const ROUNDS = 20;
const START = ['server', 'start', '--detach', '--dev', '--port', '0', '--path'] as const;
const run = promisify(execFile);

/** How long the command line takes, and until a server with its own engine answers and can run sandboxes. */
export async function measureStarts({ isQuick, signal, note }: BenchmarkContext): Promise<Measurement[]> {
  note('starts of the command line and the server');
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-start-'));
  try {
    // The first round, which is not counted, probes the runtimes and compiles the code: once per boot and once per build.
    const { help, start } = await interleave(
      isQuick ? 1 : ROUNDS,
      { help: () => time('--help'), start: () => timeStart(folder) },
      signal,
    );
    return [
      { what: 'svc --help', unit: 'ms', values: help, target: { atMost: 150 } },
      { what: 'svc server start --detach', unit: 'ms', values: start, target: { atMost: 1000 } },
    ];
  } finally {
    await removeFolders(folder);
  }
}

async function timeStart(folder: string): Promise<number> {
  try {
    return await time(...START, folder);
  } finally {
    await run(SVC, ['server', 'stop', '--path', folder]);
  }
}

/** Runs `work` while a server runs on its own folder, started by `svc server start`. */
export async function whileStarted<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-start-'));
  try {
    await run(SVC, [...START, folder]);
    return await work(folder);
  } finally {
    await run(SVC, ['server', 'stop', '--path', folder]).catch(() => undefined);
    await removeFolders(folder);
  }
}

async function time(...words: readonly string[]): Promise<number> {
  const begun = performance.now();
  await run(SVC, words);
  return performance.now() - begun;
}

async function removeFolders(folder: string): Promise<void> {
  const instance = createHash('sha256').update(folder).digest('hex').slice(0, 8);
  const runFolder = join('/run/svc', instance);
  await run('umount', ['-R', '-l', runFolder]).catch(() => undefined);
  await rm(runFolder, { recursive: true, force: true });
  await rm(folder, { recursive: true, force: true });
}
