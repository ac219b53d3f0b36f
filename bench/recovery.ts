import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { HEALTHY_RUN_MS } from '../packages/server/src/host/restart-delay.ts';
import { SupervisedServer } from '../test/e2e/supervised-server.ts';
import { BUSYBOX } from '../test/engine/start-engine.ts';
import { interleave, type Benchmark } from './suite/benchmark.ts';
import { readCpuMs } from './suite/processes.ts';

const ROUNDS = 15;
const POLL_MS = 5;
const DEADLINE_MS = 60_000;

/**
 * How soon a command runs again in a sandbox after `kill -9` of each process of the server. Each has run for so long that its end is a
 * new failure: one that ends sooner is started again after a back-off. The CPU time that a new process has used by then explains the
 * values of a busy machine.
 */
export const recovery: Benchmark = {
  name: 'recovery',
  description: 'from kill -9 of a process of the server until a command runs in a sandbox again',
  async run({ isQuick, signal }) {
    const server = await SupervisedServer.prepare();
    try {
      await server.start();
      await server.importBusybox();
      await server.call('sandbox.start', { sandbox: 'steady', config: { image: BUSYBOX } });
      const cpu: Record<'web' | 'engine', number[]> = { web: [], engine: [] };
      const restMs = isQuick ? 0 : HEALTHY_RUN_MS;
      const web = () => server.webPid();
      const engine = () => server.enginePid();
      const values = await interleave(
        isQuick ? 1 : ROUNDS,
        {
          web: async () => {
            const took = await timeKill(server, web, restMs);
            cpu.web.push(readCpuMs(await web()));
            return took;
          },
          engine: async () => {
            const took = await timeKill(server, engine, restMs);
            cpu.engine.push(readCpuMs(await engine()));
            return took;
          },
          tini: async () => await timeKill(server, async () => await parentOf(await engine()), restMs),
          bare: async () => await Promise.resolve(timeBareStart()),
        },
        signal,
      );
      return [
        { what: 'web-facing process killed', unit: 'ms', values: values.web, promise: 'recovery-web' },
        { what: 'CPU time of the next web-facing process', unit: 'ms', values: cpu.web.slice(1) },
        { what: 'engine killed', unit: 'ms', values: values.engine, promise: 'recovery-engine' },
        { what: 'CPU time of the next engine', unit: 'ms', values: cpu.engine.slice(1) },
        { what: 'tini of the engine killed', unit: 'ms', values: values.tini, promise: 'recovery-tini' },
        { what: 'a bare start of Node', unit: 'ms', values: values.bare },
      ];
    } finally {
      await server.clear();
    }
  },
};

async function timeKill(
  server: SupervisedServer,
  find: () => Promise<number>,
  restMs: number,
): Promise<number> {
  await delay(restMs);
  const pid = await find();
  const begun = performance.now();
  process.kill(pid, 'SIGKILL');
  // Calls that bypass the engine are still answered for some milliseconds, so a new process is required as well.
  const isReplaced = async () => (await find().catch(() => pid)) !== pid;
  while (!((await isReplaced()) && (await works(server)))) {
    if (performance.now() - begun > DEADLINE_MS) throw new Error('the server did not come back');
    await delay(POLL_MS);
  }
  return performance.now() - begun;
}

function timeBareStart(): number {
  const begun = performance.now();
  spawnSync(process.execPath, ['-e', '']);
  return performance.now() - begun;
}

async function works(server: SupervisedServer): Promise<boolean> {
  const answer = await server
    .call('sandbox.command.run', { sandbox: 'steady', command: 'true' })
    .catch(() => undefined);
  return answer?.result !== undefined;
}

async function parentOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const parent = Number(/^PPid:\s+(\d+)$/m.exec(status)?.[1]);
  // SAFETY: 1 is the host's own init.
  if (!(parent > 1)) throw new Error('the engine has no tini');
  return parent;
}
