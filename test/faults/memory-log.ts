import { readFileSync } from 'node:fs';
import type { Installation, Target } from './installation.ts';

/** Those that run for as long as the server does. */
const WATCHED = ['engine', 'web', 'supervisor', 'resolver'] as const satisfies readonly Target[];
type Watched = (typeof WATCHED)[number];

const SAMPLE_MS = 60_000;
const SPAN_MINUTES = 10;

interface Memory {
  /** All that is mapped in. */
  readonly rssMib: number;
  /** The same with its share only of what others have mapped too. */
  readonly pssMib: number;
}

interface Sample {
  readonly minute: number;
  /** Undefined while it is being started again. */
  readonly of: Readonly<Record<Watched, Memory | undefined>>;
}

/** How much memory the processes of a server have, minute by minute, and how it went over each ten of them. */
export class MemoryLog {
  readonly #samples: Sample[] = [];
  readonly #startedAt = performance.now();
  #timer: NodeJS.Timeout | undefined;

  /** `report` is called with each sample. */
  start(installation: Installation, report: (line: string) => void): void {
    const look = () => {
      const minute = Math.round((performance.now() - this.#startedAt) / SAMPLE_MS);
      const sample = { minute, of: sampleOf(installation) };
      this.#samples.push(sample);
      report(lineOf(sample));
    };
    look();
    this.#timer = setInterval(look, SAMPLE_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** A leak is a slope that stays; a process that was killed begins anew. */
  summary(): readonly string[] {
    const spans = Map.groupBy(this.#samples, ({ minute }) => Math.floor(minute / SPAN_MINUTES));
    return [...spans].flatMap(([span, samples]) => [
      `minutes ${span * SPAN_MINUTES} to ${(span + 1) * SPAN_MINUTES}: PSS in MiB`,
      ...WATCHED.map((name) => `  ${name.padEnd(10)} ${spanOf(samples, name)}`),
    ]);
  }
}

function sampleOf(installation: Installation): Sample['of'] {
  const of = (name: Watched) => memoryOf(installation.pidsOf(name)[0]);
  return { engine: of('engine'), web: of('web'), supervisor: of('supervisor'), resolver: of('resolver') };
}

function memoryOf(pid: number | undefined): Memory | undefined {
  try {
    const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
    const mib = (field: string) =>
      Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(rollup)?.[1]) / 1024;
    return { rssMib: mib('Rss'), pssMib: mib('Pss') };
  } catch {
    return undefined;
  }
}

function lineOf({ minute, of }: Sample): string {
  const parts = WATCHED.map((name) => {
    const memory = of[name];
    return `${name} ${memory === undefined ? '-' : `${memory.rssMib.toFixed(0)}/${memory.pssMib.toFixed(0)}`}`;
  });
  return `minute ${minute}: RSS/PSS in MiB: ${parts.join(', ')}`;
}

function spanOf(samples: readonly Sample[], name: Watched): string {
  const points = samples.flatMap(({ minute, of }) => {
    const memory = of[name];
    return memory === undefined ? [] : [{ x: minute, y: memory.pssMib }];
  });
  if (points.length < 2) return 'too few samples';
  const values = points.map(({ y }) => y);
  const slope = slopeOf(points);
  return `min ${Math.min(...values).toFixed(1)}, max ${Math.max(...values).toFixed(1)}, slope ${slope.toFixed(2)} a minute`;
}

/** Of the straight line with the least squares. */
function slopeOf(points: readonly { readonly x: number; readonly y: number }[]): number {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const middle = { x: mean(points.map(({ x }) => x)), y: mean(points.map(({ y }) => y)) };
  const covariance = mean(points.map(({ x, y }) => (x - middle.x) * (y - middle.y)));
  return covariance / mean(points.map(({ x }) => (x - middle.x) ** 2));
}
