import { execFile } from 'node:child_process';
import { mkdtemp, mkdtempDisposable, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import type { Rlimit } from '@svc/contract';
import type { TestSandbox } from './sandbox-fixture.ts';

const PLACE = '/bin/probe';

/** A program for sandboxes that tries what must be refused, see probe.c. */
export class GuestProbe {
  readonly program: Uint8Array;

  private constructor(program: Uint8Array) {
    this.program = program;
  }

  static async compile(source = 'probe.c'): Promise<GuestProbe> {
    const folder = await mkdtemp(join(tmpdir(), 'svc-probe-'));
    try {
      const program = join(folder, 'probe');
      await promisify(execFile)('gcc', [
        '-static',
        '-O1',
        '-o',
        program,
        resolve(import.meta.dirname, source),
      ]);
      return new GuestProbe(await readFile(program));
    } finally {
      await rm(folder, { recursive: true });
    }
  }

  async putInto(sandbox: TestSandbox): Promise<void> {
    await sandbox.put(PLACE, this.program, 0o755);
  }

  /** What was tried and how it ended: `ok` or the name of the error. */
  async run(
    sandbox: TestSandbox,
    words: readonly string[],
    rlimits: readonly Rlimit[] = [],
  ): Promise<Record<string, string>> {
    const { stdout, stderr, code } = await sandbox.run({ cmd: PLACE, args: words, rlimits });
    if (code !== 0) throw new Error(`the probe ended with ${code}: ${stderr}`);
    return readResults(stdout);
  }

  /** The same on the host. */
  async runHere(words: readonly string[]): Promise<Record<string, string>> {
    return readResults(await this.outputHere(words));
  }

  async outputHere(words: readonly string[]): Promise<string> {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'svc-probe-'));
    const place = join(folder.path, 'probe');
    await writeFile(place, this.program, { mode: 0o755 });
    return (await promisify(execFile)(place, words)).stdout;
  }
}

function readResults(output: string): Record<string, string> {
  const lines = output.trim().split('\n');
  return Object.fromEntries(
    lines.map((line) => {
      const { name, result }: { name: string; result: string } = JSON.parse(line);
      return [name, result];
    }),
  );
}
