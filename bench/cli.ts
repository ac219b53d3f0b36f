import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { waitUntil } from '@svc/contract/testing';
import { BUSYBOX } from '../test/engine/start-engine.ts';
import { importPython } from '../test/engine/interpreter-images.ts';
import { TestServer } from '../test/e2e/start-server.ts';
import { interleave, type Benchmark, type BenchmarkContext, type Measurement } from './suite/benchmark.ts';
import { removeFolders, startServer, stopServer, SVC } from './suite/detached-server.ts';
import { timed } from './suite/measure.ts';

const NAME = 'bench';
const IMAGE = 'python';
const RUN = [IMAGE, 'python3', '-c', 'print(1)'];
const FULL_TIMEOUT_MS = 60_000;

/** The time of a command from the Enter key to the prompt: a new process each time. */
export const cli: Benchmark = {
  name: 'cli',
  description: 'svc --help, exec and run against a server with its defaults, and svc server start',
  async run(context) {
    const server = await TestServer.start({ engineArgs: ['--warm-adaptive', '3'] });
    try {
      return [...(await measureCommands(server, context)), ...(await measureStarts(context))];
    } finally {
      await server.destroy();
    }
  },
};

async function measureCommands(
  server: TestServer,
  { isQuick, signal }: BenchmarkContext,
): Promise<Measurement[]> {
  const env = { ...process.env, SVC_API_URL: server.url };
  if (isQuick) await importPython(server.engine);
  else await server.engine.client.images.buildDemoImages({ names: [IMAGE] }, undefined, signal);
  const svc = async (...words: readonly string[]) => await runOnce(SVC, words, env);
  await svc('run', '-d', '--isolation', 'container', '--name', NAME, BUSYBOX);
  await svc('run', ...RUN);
  const values = await interleave(
    isQuick ? 1 : 30,
    {
      help: () => timed(() => svc('--help')),
      exec: () => timed(() => svc('exec', NAME, 'true')),
      run: async () => {
        await untilOneWaits(server);
        return await timed(() => svc('run', ...RUN));
      },
      node: () => timed(() => runOnce(process.execPath, ['-e', ''], env)),
    },
    signal,
  );
  return [
    { what: 'svc --help', unit: 'ms', values: values.help, promise: 'cli-help' },
    { what: 'svc exec NAME true', unit: 'ms', values: values.exec, promise: 'cli-exec' },
    { what: `svc run ${IMAGE} python3 -c 'print(1)'`, unit: 'ms', values: values.run, promise: 'cli-run' },
    { what: 'Node alone', unit: 'ms', values: values.node },
  ];
}

/** Runs one command after the other, as at a prompt. */
async function untilOneWaits(server: TestServer): Promise<void> {
  const isThere = async () => (await server.engine.client.pool()).waiting.length > 0;
  await waitUntil(isThere, { timeoutMs: FULL_TIMEOUT_MS, what: `a sandbox of ${IMAGE} waits` });
}

async function measureStarts({ isQuick, signal }: BenchmarkContext): Promise<Measurement[]> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-start-'));
  try {
    // The first round, which is not counted, probes the runtimes and compiles the code: once per boot and once per build.
    const { start } = await interleave(
      isQuick ? 1 : 20,
      {
        start: async () => {
          try {
            return await timed(() => startServer(folder));
          } finally {
            await stopServer(folder);
          }
        },
      },
      signal,
    );
    return [{ what: 'svc server start --detach', unit: 'ms', values: start, promise: 'server-start' }];
  } finally {
    await removeFolders(folder);
  }
}

async function runOnce(program: string, words: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  const child = spawn(program, words, { stdio: ['ignore', 'ignore', 'inherit'], env });
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`${program} ${words.join(' ')} ended with ${code}`);
}
