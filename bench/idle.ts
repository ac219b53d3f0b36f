import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Benchmark, Measurement } from './benchmark.ts';
import { readTree, sumOf } from './process-memory.ts';
import { whileStarted } from './server-start.ts';

const MIB = 2 ** 20;
/** Until what is loaded after the start is there. */
const SETTLE_MS = 15_000;

/** What a server takes of the memory that nobody uses: each of its processes, with its share of what they have in common. */
export const idle: Benchmark = {
  name: 'idle',
  description: 'memory (PSS) of every process of a server and its engine without a sandbox',
  promise: 'all together ≤ 220 MiB',
  run: async ({ isQuick, signal }) => {
    // Not counted: it compiles what has changed since set-up did, and keeps the memory that it took for that.
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
