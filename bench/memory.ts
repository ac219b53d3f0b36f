import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { Isolation } from '@svc/engine/client';
import { specOf } from '../test/engine/sandbox-fixture.ts';
import type { TestEngine } from '../test/engine/start-engine.ts';
import { percentile, type Benchmark, type BenchmarkContext, type Measurement } from './benchmark.ts';
import { withEngine } from './first-output.ts';

const MIB = 1024 * 1024;
const CREATE_AT_ONCE = 4;
const SETTLE_MS = 3000;

/**
 * The memory of an idle sandbox, measured in two ways that check each other:
 * - accounted: what the sandbox's cgroup is charged (the engine's own metrics say how much), by how much kernel memory that cannot be
 *   taken back grows (unreclaimable slab, per-CPU data, stacks, page tables), and by how much the engine grows. An upper bound: part of
 *   the kernel's memory is charged to the cgroup too;
 * - host: by how much MemAvailable falls. It includes everything, also other programs: it is exact on an otherwise idle machine,
 *   and noise on others.
 * Growth is the slope of a line through all steps.
 */
export const memory: Benchmark = {
  name: 'memory',
  description:
    'host memory per idle sandbox with 0, 50, 100 and 200 of class container, and with 5 of gvisor',
  promise: 'container ≤ 1.5 MiB of the host per idle sandbox',
  run: (context) =>
    withEngine([], async (engine) => [
      ...(await measure(engine, 'container', context)),
      ...(await measure(engine, 'gvisor', context)),
    ]),
};

const STEPS = { container: [0, 50, 100, 200], gvisor: [0, 5] };
const QUICK_STEPS = { container: [0, 2, 4], gvisor: [0, 1] };

interface Reading {
  readonly sandboxes: number;
  readonly availableMib: number;
  readonly kernelMib: number;
  readonly engineMib: number;
}

async function measure(
  engine: TestEngine,
  name: 'container' | 'gvisor',
  { isQuick, signal, note }: BenchmarkContext,
): Promise<Measurement[]> {
  const readings: Reading[] = [];
  for (const sandboxes of (isQuick ? QUICK_STEPS : STEPS)[name]) {
    await growTo(engine, name, sandboxes, signal);
    // Memory of the starts is returned to the kernel within this time.
    await delay(isQuick ? 0 : SETTLE_MS);
    const reading = read(engine, sandboxes);
    readings.push(reading);
    note(`${name}: ${JSON.stringify(reading)}`);
  }
  const charged = (await engine.client.metrics()).map(({ memoryBytes }) => memoryBytes / MIB);
  await Promise.all((await engine.client.listSandboxes()).map(({ id }) => engine.client.removeSandbox(id)));
  const cgroup = percentile(charged, 50);
  const kernel = slopeOf(readings, 'kernelMib');
  const ofEngine = slopeOf(readings, 'engineMib');
  const target = name === 'container' ? { target: { atMost: 1.5 } } : {};
  const row = (what: string, value: number) => ({
    what: `${name}, ${what}`,
    unit: 'MiB' as const,
    values: [value],
  });
  return [
    { ...row('accounted, per sandbox', cgroup + kernel + ofEngine), ...target },
    row('cgroup, per sandbox', cgroup),
    row('kernel, per sandbox', kernel),
    row('engine, per sandbox', ofEngine),
    row('host, per sandbox', -slopeOf(readings, 'availableMib')),
    row('engine, in all', readings.at(-1)?.engineMib ?? Number.NaN),
  ];
}

async function growTo(
  engine: TestEngine,
  isolation: Isolation,
  wanted: number,
  signal: AbortSignal,
): Promise<void> {
  let missing = wanted - (await engine.client.listSandboxes()).length;
  while (missing > 0) {
    signal.throwIfAborted();
    const count = Math.min(CREATE_AT_ONCE, missing);
    const request = { isolation, start: true, spec: specOf() };
    await Promise.all(Array.from({ length: count }, () => engine.client.createSandbox(request)));
    missing -= count;
  }
}

function read(engine: TestEngine, sandboxes: number): Reading {
  const host = kibibytes('/proc/meminfo');
  const kernel = ['SUnreclaim', 'KernelStack', 'PageTables', 'Percpu'];
  return {
    sandboxes,
    availableMib: host('MemAvailable') / 1024,
    kernelMib: kernel.reduce((sum, field) => sum + host(field), 0) / 1024,
    engineMib: kibibytes(`/proc/${engine.pid}/status`)('VmRSS') / 1024,
  };
}

function kibibytes(file: string): (field: string) => number {
  const text = readFileSync(file, 'utf8');
  return (field) => Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(text)?.[1]);
}

/** Of the line through all readings with the least squares. */
function slopeOf(readings: readonly Reading[], field: keyof Reading): number {
  const mean = (of: keyof Reading) =>
    readings.reduce((sum, reading) => sum + reading[of], 0) / readings.length;
  const [meanX, meanY] = [mean('sandboxes'), mean(field)];
  let above = 0;
  let below = 0;
  for (const reading of readings) {
    above += (reading.sandboxes - meanX) * (reading[field] - meanY);
    below += (reading.sandboxes - meanX) ** 2;
  }
  return above / below;
}
