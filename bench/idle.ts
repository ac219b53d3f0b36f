import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { Isolation } from '@svc/contract/orchestrator';
import { specOf } from '../test/engine/sandbox-fixture.ts';
import { TestEngine } from '../test/engine/start-engine.ts';
import { percentile, type Benchmark, type BenchmarkContext, type Measurement } from './suite/benchmark.ts';
import { whileServerRuns } from './suite/detached-server.ts';
import { readTree, sumOf } from './suite/processes.ts';

const MIB = 2 ** 20;
const CREATE_AT_ONCE = 4;
/** Time for modules that are loaded after the start. */
const SETTLE_MS = 15_000;
const CONTAINERS = 100;
const GVISORS = 5;
const CPU_WINDOW_MS = 20_000;

/** Memory of an idle server, and memory and CPU of idle sandboxes. */
export const idle: Benchmark = {
  name: 'idle',
  description: `memory (PSS) of an idle server, memory of each of ${CONTAINERS} idle containers, CPU of each of ${GVISORS} idle gVisor sandboxes`,
  async run(context) {
    const server = await measureServer(context);
    const engine = await TestEngine.start();
    try {
      return [...server, ...(await measureMemory(engine, context)), ...(await measureCpu(engine, context))];
    } finally {
      await engine.destroy();
    }
  },
};

async function measureServer({ isQuick, signal }: BenchmarkContext): Promise<Measurement[]> {
  // The first start is not counted: it compiles code that changed since set-up, and keeps that memory.
  await whileServerRuns(() => Promise.resolve());
  return await whileServerRuns(async (pids) => {
    await delay(isQuick ? 0 : SETTLE_MS, undefined, { signal });
    // The engine may be a child of the server's, or not.
    const processes = new Map(pids.flatMap(readTree).map((process) => [process.pid, process]));
    const each = [...processes.values()];
    return [
      { ...inMib('all processes of a server', sumOf(each)), promise: 'idle-server-memory' },
      ...each.map(({ name, pssBytes }) => inMib(`  ${name}`, pssBytes)),
    ];
  });
}

function inMib(what: string, bytes: number): Measurement {
  return { what, unit: 'MiB', values: [bytes / MIB] };
}

/**
 * The sum of what the cgroup of a sandbox is charged, and by how much kernel memory that cannot be taken back (unreclaimable slab,
 * per-CPU data, stacks, page tables) and the engine grow. An upper bound: part of the kernel's memory is charged to the cgroup too.
 */
async function measureMemory(
  engine: TestEngine,
  { isQuick, signal }: BenchmarkContext,
): Promise<Measurement[]> {
  const count = isQuick ? 2 : CONTAINERS;
  const settle = () => delay(isQuick ? 0 : SETTLE_MS, undefined, { signal });
  // What the first one needs is kept for all others.
  await startSandboxes(engine, 'container', 1, signal);
  await settle();
  const before = readMemory(engine);
  await startSandboxes(engine, 'container', count, signal);
  await settle();
  const after = readMemory(engine);
  const charged = (await engine.client.metrics()).map(({ memoryBytes }) => memoryBytes);
  await removeSandboxes(engine);
  const cgroup = percentile(charged, 50);
  const [kernel, ofEngine] = [
    (after.kernelBytes - before.kernelBytes) / count,
    (after.engineBytes - before.engineBytes) / count,
  ];
  return [
    { ...inMib('memory of an idle container', cgroup + kernel + ofEngine), promise: 'idle-container-memory' },
    inMib('  its cgroup', cgroup),
    inMib('  the kernel', kernel),
    inMib('  the engine', ofEngine),
  ];
}

function readMemory(engine: TestEngine): { readonly kernelBytes: number; readonly engineBytes: number } {
  const host = kibibytes('/proc/meminfo');
  const kernel = ['SUnreclaim', 'KernelStack', 'PageTables', 'Percpu'];
  return {
    kernelBytes: kernel.reduce((sum, field) => sum + host(field), 0) * 1024,
    engineBytes: kibibytes(`/proc/${engine.pid}/status`)('VmRSS') * 1024,
  };
}

function kibibytes(file: string): (field: string) => number {
  const text = readFileSync(file, 'utf8');
  return (field) => Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(text)?.[1]);
}

async function measureCpu(engine: TestEngine, { isQuick, signal }: BenchmarkContext): Promise<Measurement[]> {
  await startSandboxes(engine, 'gvisor', isQuick ? 1 : GVISORS, signal);
  await delay(isQuick ? 2000 : 5000, undefined, { signal });
  const before = await engine.client.metrics();
  await delay(isQuick ? 2500 : CPU_WINDOW_MS, undefined, { signal });
  const after = new Map((await engine.client.metrics()).map((metrics) => [metrics.id, metrics]));
  const values = before.map(({ id, cpuSeconds, sampledAt }) => {
    const later = after.get(id);
    if (later === undefined) throw new Error(`sandbox ${id} is gone`);
    const seconds = (Date.parse(later.sampledAt) - Date.parse(sampledAt)) / 1000;
    return ((later.cpuSeconds - cpuSeconds) * 1000) / seconds;
  });
  return [
    { what: 'CPU time of an idle gVisor sandbox a second', unit: 'ms', values, promise: 'idle-gvisor-cpu' },
  ];
}

async function startSandboxes(
  engine: TestEngine,
  isolation: Isolation,
  count: number,
  signal: AbortSignal,
): Promise<void> {
  const request = { isolation, start: true, spec: specOf() };
  for (let missing = count; missing > 0; missing -= CREATE_AT_ONCE) {
    signal.throwIfAborted();
    const group = Array.from({ length: Math.min(CREATE_AT_ONCE, missing) });
    await Promise.all(group.map(() => engine.client.createSandbox(request)));
  }
}

async function removeSandboxes(engine: TestEngine): Promise<void> {
  await Promise.all((await engine.client.listSandboxes()).map(({ id }) => engine.client.removeSandbox(id)));
}
