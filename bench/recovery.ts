import { readFile } from 'node:fs/promises';
import { SupervisedServer } from '../test/e2e/supervised-server.ts';
import { BUSYBOX } from '../test/engine/start-engine.ts';
import { interleave, type Benchmark } from './benchmark.ts';

const ROUNDS = 15;
const POLL_MS = 5;
const DEADLINE_MS = 60_000;

/** How soon a command runs again in a sandbox after `kill -9` of each process of the server. */
export const recovery: Benchmark = {
  name: 'recovery',
  description: 'from kill -9 of a process of the server until a command runs in a sandbox again',
  promise: 'the web-facing process, the engine and its tini: back within 1 s each (p50)',
  async run({ isQuick, signal, note }) {
    const server = await SupervisedServer.prepare();
    try {
      await server.start();
      await server.importBusybox();
      await server.call('sandbox.start', { sandbox: 'steady', config: { image: BUSYBOX } });
      note('kills and returns');
      const values = await interleave(
        isQuick ? 1 : ROUNDS,
        {
          web: async () => await timeKill(server, await server.webPid()),
          engine: async () => await timeKill(server, await server.enginePid()),
          tini: async () => await timeKill(server, await parentOf(await server.enginePid())),
        },
        signal,
      );
      const target = { atMost: 1000 };
      return [
        { what: 'web-facing process killed', unit: 'ms', values: values.web, target },
        { what: 'engine killed', unit: 'ms', values: values.engine, target },
        { what: 'tini of the engine killed', unit: 'ms', values: values.tini, target },
      ];
    } finally {
      await server.clear();
    }
  },
};

async function timeKill(server: SupervisedServer, pid: number): Promise<number> {
  const begun = performance.now();
  process.kill(pid, 'SIGKILL');
  // What the dead one was asked may still be answered by nobody.
  while (!(await works(server))) {
    if (performance.now() - begun > DEADLINE_MS) throw new Error('the server did not come back');
    await new Promise((resolve) => void setTimeout(resolve, POLL_MS));
  }
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
