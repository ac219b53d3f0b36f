import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { waitUntil } from '@svc/contract/testing';
import { BUSYBOX } from '../test/engine/start-engine.ts';
import { importPython } from '../test/engine/interpreter-images.ts';
import { TestServer } from '../test/e2e/start-server.ts';
import { interleave, type Benchmark } from './benchmark.ts';

const SVC = resolve(import.meta.dirname, '../svc');
const NAME = 'bench';
const HELP_TARGET_MS = 150;
const EXEC_TARGET_MS = 200;
const RUN_TARGET_MS = 250;
const IMAGE = 'python';
const RUN = [IMAGE, 'python3', '-c', 'print(1)'];
const FULL_TIMEOUT_MS = 60_000;

/** The time of a command from the Enter key to the prompt: a new process each time. */
export const cli: Benchmark = {
  name: 'cli',
  description:
    'svc --help, and svc exec and svc run against a server that runs as it does by default, beside an empty Node',
  promise:
    `svc --help ≤ ${HELP_TARGET_MS} ms, svc exec NAME true ≤ ${EXEC_TARGET_MS} ms, ` +
    `svc run ${IMAGE} python3 -c 'print(1)', the image used before, ≤ ${RUN_TARGET_MS} ms in all (p50)`,
  async run({ isQuick, signal }) {
    const server = await TestServer.start({ engineArgs: ['--warm-adaptive', '3'] });
    try {
      const env = { ...process.env, SVC_API_URL: server.url };
      if (isQuick) await importPython(server.engine);
      else await server.engine.client.images.buildDemoImages({ names: [IMAGE] }, undefined, signal);
      await runOnce(SVC, ['run', '-d', '--isolation', 'container', '--name', NAME, BUSYBOX], env);
      await runOnce(SVC, ['run', ...RUN], env);
      const runWarm = async () => {
        await untilOneWaits(server);
        return await timed(SVC, ['run', ...RUN], env);
      };
      const values = await interleave(
        isQuick ? 1 : 30,
        {
          help: () => timed(SVC, ['--help'], env),
          exec: () => timed(SVC, ['exec', NAME, 'true'], env),
          run: runWarm,
          runContainer: () => timed(SVC, ['run', '--isolation', 'container', ...RUN], env),
          list: () => timed(SVC, ['ps', '-q'], env),
          node: () => timed(process.execPath, ['-e', ''], env),
        },
        signal,
      );
      return [
        { what: 'svc --help', unit: 'ms', values: values.help, target: { atMost: HELP_TARGET_MS } },
        { what: 'svc exec NAME true', unit: 'ms', values: values.exec, target: { atMost: EXEC_TARGET_MS } },
        {
          what: `svc run ${IMAGE} python3 -c 'print(1)', used before`,
          unit: 'ms',
          values: values.run,
          target: { atMost: RUN_TARGET_MS },
        },
        { what: 'the same, class container', unit: 'ms', values: values.runContainer },
        { what: 'svc ps -q', unit: 'ms', values: values.list },
        { what: 'Node alone', unit: 'ms', values: values.node },
      ];
    } finally {
      await server.destroy();
    }
  },
};

/** Runs one command after the other, as at a prompt. */
async function untilOneWaits(server: TestServer): Promise<void> {
  const isThere = async () =>
    (await server.engine.client.pool()).waiting.some(({ isolation }) => isolation !== 'container');
  await waitUntil(isThere, { timeoutMs: FULL_TIMEOUT_MS, what: `a sandbox of ${IMAGE} waits` });
}

async function timed(program: string, words: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const begun = performance.now();
  await runOnce(program, words, env);
  return performance.now() - begun;
}

async function runOnce(program: string, words: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  const child = spawn(program, words, { stdio: ['ignore', 'ignore', 'inherit'], env });
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`${program} ${words.join(' ')} ended with ${code}`);
}
