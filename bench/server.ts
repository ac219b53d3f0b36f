import { readFile } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { resolve } from 'node:path';
import { env } from 'node:process';
import { importPython } from '../test/engine/interpreter-images.ts';
import { TestServer } from '../test/e2e/start-server.ts';
import { BUSYBOX } from '../test/engine/start-engine.ts';
import type { Benchmark, BenchmarkContext, Measurement } from './benchmark.ts';
import { measureRate } from './http-load.ts';
import { measureStarts } from './server-start.ts';

const RATE_MS = 3000;
const CONNECTIONS = 32;
const POPULATIONS = [0, 100, 200] as const;
const MIB = 1024 * 1024;
/** The compile cache of `svc`: a server that has to compile its sources keeps that memory. */
const CODE_CACHE = resolve(import.meta.dirname, '../node_modules/.cache/svc');

/** The overhead of the server over the engine: start, calls per second, round trips of a client, and memory. */
export const server: Benchmark = {
  name: 'server',
  description:
    'start, HTTP calls per second, round trips of command.run and repl.run, memory with many sandboxes',
  promise:
    'starts in under 1 s; health ≥ 10,000/s on one core; command.run ≤ 4 ms, repl.run ≤ 3 ms (p50, runc); ≤ 150 MiB at 200 sandboxes',
  async run(context) {
    const starts = await measureStarts(context);
    const measureCalls = async (running: TestServer) => [
      ...(await measureRates(running, context)),
      ...(await measureRoundTrips(running, context)),
    ];
    if (context.isQuick) {
      const all = withServer(async (running) => [
        ...(await measureCalls(running)),
        ...(await measureMemory(running, context)),
      ]);
      return [...starts, ...(await all)];
    }
    const calls = await withServer(measureCalls);
    // On a fresh server, because garbage of a burst of calls is not part of the cost of sandboxes.
    return [...starts, ...calls, ...(await withServer((running) => measureMemory(running, context)))];
  },
};

async function withServer<T>(work: (running: TestServer) => Promise<T>): Promise<T> {
  const before = env['NODE_COMPILE_CACHE'];
  env['NODE_COMPILE_CACHE'] = CODE_CACHE;
  try {
    const running = await TestServer.start({ engineArgs: ['--isolation', 'container'] });
    try {
      return await work(running);
    } finally {
      await running.destroy();
    }
  } finally {
    if (before === undefined) delete env['NODE_COMPILE_CACHE'];
    else env['NODE_COMPILE_CACHE'] = before;
  }
}

async function measureRates(
  running: TestServer,
  { isQuick, ...context }: BenchmarkContext,
): Promise<Measurement[]> {
  context.note('calls per second');
  await mustCall(running, 'sandbox.start', { sandbox: 'rate', config: { image: BUSYBOX } });
  const options = { connections: CONNECTIONS, durationMs: isQuick ? 300 : RATE_MS };
  const rpc = (method: string, params: object) => ({
    method: 'POST' as const,
    path: '/api/v1/rpc',
    body: JSON.stringify({ jsonrpc: '2.0', method, params, id: 1 }),
  });
  const health = await measureRate(running.url, { method: 'GET', path: '/api/v1/health' }, options);
  const metrics = await measureRate(running.url, rpc('sandbox.metrics.get', { sandbox: 'rate' }), options);
  const commands = await measureRate(
    running.url,
    rpc('sandbox.command.run', { sandbox: 'rate', command: 'true' }),
    options,
  );
  return [
    { what: 'health', unit: '/s', values: [health], target: { atLeast: 10_000 } },
    { what: 'sandbox.metrics.get', unit: '/s', values: [metrics] },
    { what: `sandbox.command.run true, ${CONNECTIONS} at once`, unit: '/s', values: [commands] },
  ];
}

async function measureRoundTrips(
  running: TestServer,
  { isQuick, signal, ...context }: BenchmarkContext,
): Promise<Measurement[]> {
  context.note('round trips; the python image is made first');
  if (isQuick) await importPython(running.engine);
  else await running.engine.client.images.buildDemoImages({ names: ['python'] }, undefined, signal);
  await mustCall(running, 'sandbox.start', { sandbox: 'trip', config: { image: 'python' } });
  const agent = new Agent({ keepAlive: true });
  const rounds = isQuick ? 10 : 500;
  const time = async (method: string, params: object) => {
    const body = JSON.stringify({ jsonrpc: '2.0', method, params: { sandbox: 'trip', ...params }, id: 1 });
    const values: number[] = [];
    for (let round = -5; round < rounds; round += 1) {
      signal.throwIfAborted();
      const begun = performance.now();
      await post(`${running.url}/api/v1/rpc`, body, agent);
      if (round >= 0) values.push(performance.now() - begun);
    }
    return values;
  };
  const command = await time('sandbox.command.run', { command: 'true' });
  const code = await time('sandbox.repl.run', { language: 'python', code: '1+1' });
  agent.destroy();
  await mustCall(running, 'sandbox.stop', { sandbox: 'trip' });
  return [
    { what: 'sandbox.command.run true', unit: 'ms', values: command, target: { atMost: 4 } },
    { what: 'sandbox.repl.run 1+1', unit: 'ms', values: code, target: { atMost: 3 } },
  ];
}

async function measureMemory(
  running: TestServer,
  { isQuick, ...context }: BenchmarkContext,
): Promise<Measurement[]> {
  const measurements: Measurement[] = [];
  let started = 0;
  for (const population of isQuick ? [0, 3] : POPULATIONS) {
    context.note(`memory with ${population} sandboxes`);
    const names = Array.from({ length: population - started }, (_, n) => `crowd-${started + n}`);
    started = population;
    await inGroups(names, 10, async (sandbox) => {
      await mustCall(running, 'sandbox.start', { sandbox, config: { image: BUSYBOX, memory: 32 } });
      await mustCall(running, 'sandbox.command.run', { sandbox, command: 'true' });
    });
    const server = [await residentBytes(await running.webPid())].map((bytes) => bytes / MIB);
    const engine = [await residentBytes(running.engine.pid)].map((bytes) => bytes / MIB);
    const target = population === 200 ? { target: { atMost: 150 } } : {};
    measurements.push({
      what: `server with ${population} sandboxes`,
      unit: 'MiB',
      values: server,
      ...target,
    });
    measurements.push({ what: `engine with ${population} sandboxes`, unit: 'MiB', values: engine });
  }
  return measurements;
}

async function mustCall(running: TestServer, method: string, params: object): Promise<void> {
  const { error } = await running.call(method, params);
  if (error !== undefined) throw new Error(error.message);
}

async function inGroups(
  items: readonly string[],
  size: number,
  work: (item: string) => Promise<void>,
): Promise<void> {
  for (let at = 0; at < items.length; at += size) await Promise.all(items.slice(at, at + size).map(work));
}

async function post(url: string, body: string, agent: Agent): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    const outgoing = request(url, { method: 'POST', agent, headers }, (response) => {
      response.resume();
      response.once('end', resolve);
    });
    outgoing.once('error', reject);
    outgoing.end(body);
  });
}

async function residentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}
