import { PlatformError } from '@svc/contract';
import { pause } from '@svc/contract/node-pause';
import type { SandboxUsageReport } from '@svc/contract/orchestrator';
import { SANDBOX_METRICS } from '@svc/contract/rest';
import type { Logger } from 'pino';
import type { Orchestrator } from '../orchestrator/orchestrator.ts';
import type { Database } from '../store/database.ts';
import { addSamples, forgetSamples, listSamples, type MetricSample } from '../store/metric-samples.ts';
import { SampleRing, type SandboxValues } from './sample-ring.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const RETENTION_MS = 7 * 24 * HOUR_MS;
const MAX_SAMPLES = 720;
const POLL_TIMEOUT_MS = 10_000;

export interface MetricHistoryParts {
  readonly database: Database;
  readonly orchestrator: Pick<Orchestrator, 'metrics'>;
  /** Between two measurements. */
  readonly sampleMs: number;
  readonly logger: Logger;
}

/** One measurement of a sandbox, as callers see it. */
export interface Sample {
  readonly atMs: number;
  readonly values: Readonly<Record<string, number>>;
}

interface Recorded {
  readonly ring: SampleRing;
  sampledAt: string;
  receivedBytes: number;
  sentBytes: number;
}

/**
 * Resource usage of sandboxes over time. Memory keeps the latest 720 samples as measured (an hour at one per 5 s); the store keeps a row
 * per sandbox and minute for a week. Several servers on one store write the same rows: the first write wins.
 */
export class MetricHistory {
  readonly #parts: MetricHistoryParts;
  readonly #recorded = new Map<string, Recorded>();
  #storedUntilMs: number;
  #forgottenAtMs = 0;

  constructor(parts: MetricHistoryParts) {
    this.#parts = parts;
    this.#storedUntilMs = minuteOf(Date.now());
  }

  /** Until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#turn(signal);
      await pause(this.#parts.sampleMs, signal);
    }
  }

  /** Takes one measurement, and stores the mean of every minute that is over. */
  async record(atMs: number, signal: AbortSignal): Promise<void> {
    for (const report of await this.#parts.orchestrator.metrics(signal)) this.#note(atMs, report);
    await this.#store(atMs);
  }

  /** Oldest first, `fromMs` included and `toMs` not. Older samples stand for a minute each. */
  async read(sandboxId: string, fromMs: number, toMs: number): Promise<readonly Sample[]> {
    const recent = [...(this.#recorded.get(sandboxId)?.ring.between(fromMs, toMs) ?? [])];
    // After a restart the first minute in memory is incomplete; its row is more accurate.
    const sinceMs = recent[0] === undefined ? toMs : minuteOf(recent[0].atMs) + MINUTE_MS;
    const stored = await listSamples(this.#parts.database, sandboxId, fromMs, Math.min(sinceMs, toMs));
    const coveredMs = (stored.at(-1)?.atMs ?? Number.NEGATIVE_INFINITY) + MINUTE_MS;
    return [...stored, ...recent.filter(({ atMs }) => atMs >= coveredMs)];
  }

  async #turn(signal: AbortSignal): Promise<void> {
    try {
      await this.record(Date.now(), AbortSignal.any([signal, AbortSignal.timeout(POLL_TIMEOUT_MS)]));
    } catch (error) {
      // An unreachable orchestrator is logged by the reconciler.
      if (signal.aborted || PlatformError.is(error, 'orchestrator_unreachable')) return;
      this.#parts.logger.warn({ err: error }, 'metrics could not be recorded');
    }
  }

  #note(atMs: number, report: SandboxUsageReport): void {
    const known = this.#recorded.get(report.id);
    // The engine measures less often than it is asked: skip a sample that was seen before.
    if (known?.sampledAt === report.sampledAt) return;
    const { sampledAt } = report;
    const recorded = known ?? {
      ring: new SampleRing(MAX_SAMPLES),
      sampledAt,
      receivedBytes: 0,
      sentBytes: 0,
    };
    const seconds = known === undefined ? 0 : (atMs - known.ring.lastAtMs) / 1000;
    recorded.ring.push(atMs, toValues(report, recorded, seconds));
    recorded.sampledAt = sampledAt;
    recorded.receivedBytes = report.networkReceivedBytes;
    recorded.sentBytes = report.networkSentBytes;
    this.#recorded.set(report.id, recorded);
  }

  async #store(nowMs: number): Promise<void> {
    const untilMs = minuteOf(nowMs);
    if (untilMs <= this.#storedUntilMs) return;
    const samples = [...this.#recorded].flatMap(([id, { ring }]) =>
      toRows(id, ring.between(this.#storedUntilMs, untilMs)),
    );
    // Also after a failure: a gap in the history is better than a backlog.
    this.#storedUntilMs = untilMs;
    for (const [id, { ring }] of this.#recorded) {
      if (ring.lastAtMs < nowMs - HOUR_MS) this.#recorded.delete(id);
    }
    await addSamples(this.#parts.database, samples);
    if (nowMs - this.#forgottenAtMs < HOUR_MS) return;
    this.#forgottenAtMs = nowMs;
    await forgetSamples(this.#parts.database, nowMs - RETENTION_MS);
  }
}

function toValues(report: SandboxUsageReport, before: Recorded, seconds: number): SandboxValues {
  return {
    cpu: report.cpuPercent,
    memory_bytes: report.memoryBytes,
    memory_limit_bytes: report.memoryLimitBytes,
    disk_used_bytes: report.diskUsedBytes,
    disk_total_bytes: report.diskTotalBytes,
    net_rx_bytes_rate: rate(report.networkReceivedBytes, before.receivedBytes, seconds),
    net_tx_bytes_rate: rate(report.networkSentBytes, before.sentBytes, seconds),
    processes: report.processes,
  };
}

/** A counter that fell was reset by a new run. */
function rate(now: number, before: number, seconds: number): number {
  if (seconds <= 0) return 0;
  return (now >= before ? now - before : now) / seconds;
}

function toRows(
  ownerId: string,
  samples: Iterable<{ readonly atMs: number; readonly values: SandboxValues }>,
) {
  const minutes = Map.groupBy(samples, ({ atMs }) => minuteOf(atMs));
  return [...minutes].map(([atMs, group]): MetricSample => ({
    ownerId,
    atMs,
    values: meanOf(group.map(({ values }) => values)),
  }));
}

function meanOf(values: readonly SandboxValues[]): Readonly<Record<string, number>> {
  const mean = (metric: (typeof SANDBOX_METRICS)[number]) =>
    values.reduce((sum, value) => sum + value[metric], 0) / values.length;
  return Object.fromEntries(SANDBOX_METRICS.map((metric) => [metric, Math.round(mean(metric) * 100) / 100]));
}

function minuteOf(atMs: number): number {
  return Math.floor(atMs / MINUTE_MS) * MINUTE_MS;
}
