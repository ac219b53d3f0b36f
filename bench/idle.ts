import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Benchmark, Measurement } from './benchmark.ts';
import { readTree, sumOf } from './process-memory.ts';
import { whileStarted } from './server-start.ts';

const MIB = 2 ** 20;
/** Time for modules that are loaded after the start. */
const SETTLE_MS = 15_000;

/** Memory of an idle server: that of each process, with its share of shared memory (PSS). */
export const idle: Benchmark = {
  name: 'idle',
  description: 'memory (PSS) of every process of a server and its engine without a sandbox',
  promise: 'all together ≤ 220 MiB',
  run: async ({ isQuick, signal }) => {
    // The first start is not counted: it compiles code that changed since set-up, and keeps that memory.
    await whileStarted(() => Promise.resolve());
    return await whileStarted(async (folder) => {
      await delay(isQuick ? 0 : SETTLE_MS, undefined, { signal });
      const pids = await Promise.all(['server.pid', 'engine.pid'].map((name) => readPid(join(folder, name))));
      // The engine may be a child of the server's, or not.
      const processes = new Map(pids.flatMap(readTree).map((process) => [process.pid, process]));
      const each = [...processes.values()].map(({ name, pssBytes }) => row(`  ${name}`, pssBytes));
      return [{ ...row('all processes', sumOf([...processes.values()])), target: { atMost: 220 } }, ...each];
    });
  },
};

async function readPid(file: string): Promise<number> {
  return Number.parseInt(await readFile(file, 'utf8'), 10);
}

function row(what: string, bytes: number): Measurement {
  return { what, unit: 'MiB', values: [bytes / MIB] };
}
