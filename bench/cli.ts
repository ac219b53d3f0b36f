import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { BUSYBOX } from '../test/engine/start-engine.ts';
import { TestServer } from '../test/e2e/start-server.ts';
import { interleave, type Benchmark } from './benchmark.ts';

const SVC = resolve(import.meta.dirname, '../svc');
const NAME = 'bench';
const HELP_TARGET_MS = 150;
const EXEC_TARGET_MS = 200;

/** What a person waits for, from the Enter key to the prompt: a process of its own each time. */
export const cli: Benchmark = {
  name: 'cli',
  description: 'svc --help, and svc exec NAME true against a server that runs, beside an empty Node',
  promise: `svc --help ≤ ${HELP_TARGET_MS} ms, svc exec NAME true ≤ ${EXEC_TARGET_MS} ms in all (p50)`,
  async run({ isQuick, signal }) {
    const server = await TestServer.start({ engineArgs: ['--isolation', 'container'] });
    try {
      const env = { ...process.env, SVC_API_URL: server.url };
      await runOnce(SVC, ['run', '-d', '--name', NAME, BUSYBOX], env);
      const values = await interleave(
        isQuick ? 2 : 30,
        {
          help: () => timed(SVC, ['--help'], env),
          exec: () => timed(SVC, ['exec', NAME, 'true'], env),
          list: () => timed(SVC, ['ps', '-q'], env),
          node: () => timed(process.execPath, ['-e', ''], env),
        },
        signal,
      );
      return [
        { what: 'svc --help', unit: 'ms', values: values.help, target: { atMost: HELP_TARGET_MS } },
        { what: 'svc exec NAME true', unit: 'ms', values: values.exec, target: { atMost: EXEC_TARGET_MS } },
        { what: 'svc ps -q', unit: 'ms', values: values.list },
        { what: 'Node alone', unit: 'ms', values: values.node },
      ];
    } finally {
      await server.destroy();
    }
  },
};

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
