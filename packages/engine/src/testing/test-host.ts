import { execFile } from 'node:child_process';
import { chmod, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { SvcHostCalls } from '../host/svc-host-calls.ts';

const run = promisify(execFile);

/** A folder with host calls that work in it; disposing of it removes every mount, namespace and file below it. */
export interface TestHost extends AsyncDisposable {
  readonly folder: string;
  readonly calls: SvcHostCalls;
  /** The same calls through another helper. */
  withBinary(binary: string): SvcHostCalls;
  /** Mount points below the folder. */
  mounts(): Promise<readonly string[]>;
  /** Runs a command of the host; resolves to its output. */
  run(file: string, ...args: readonly string[]): Promise<string>;
}

export async function makeTestHost(): Promise<TestHost> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-host-calls-'));
  await chmod(folder, 0o711);
  const calls = new SvcHostCalls();
  const others: SvcHostCalls[] = [];
  return {
    folder,
    calls,
    withBinary: (binary) => {
      const other = new SvcHostCalls({ binary });
      others.push(other);
      return other;
    },
    mounts: () => mountsBelow(folder),
    run: async (file, ...args) => (await run(file, args, { timeout: 100_000 })).stdout,
    [Symbol.asyncDispose]: async () => {
      for (const path of (await mountsBelow(folder)).toReversed()) await calls.unmount(path);
      for (const helper of [calls, ...others]) await helper.close();
      await rm(folder, { recursive: true, maxRetries: 10 });
    },
  };
}

async function mountsBelow(folder: string): Promise<readonly string[]> {
  const table = await readFile('/proc/self/mountinfo', 'utf8');
  const points = table.split('\n').flatMap((line) => line.split(' ')[4] ?? []);
  return points.filter((point) => point.startsWith(`${folder}/`));
}

/** Interface names are unique for each process and call: the whole machine shares them. */
export function uniqueInterface(): string {
  return `t${process.pid.toString(36)}${(++interfaceCount).toString(36)}`;
}
let interfaceCount = 0;

export async function interfaces(): Promise<readonly string[]> {
  return readdir('/sys/class/net');
}
