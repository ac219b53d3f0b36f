import { MAX_METRICS_RANGE_SECONDS } from '@svc/contract/rest';
import { badField } from '../../../dispatch/rest-dispatch.ts';
import type { ControlRoutes } from './control-route.ts';
import { specOf } from './sandbox-words.ts';
import { requireRunning, requireSandbox } from './sandboxes.ts';

const STEP_SECONDS = 5;
const DEFAULT_RANGE_SECONDS = 3600;
const MS_PER_SECOND = 1000;
const MAX_LOG_LINES = 1000;
const MIB = 2 ** 20;

/** What sandboxes use and write, and the organization for E2B's command line. */
export const readingRoutes: ControlRoutes = {
  'GET /sandboxes/:id/metrics': async (_parts, { call, params, query }) => {
    const sandbox = await requireRunning(call, params);
    const [start, end] = [secondsOf(query, 'start'), secondsOf(query, 'end')];
    const now = Date.now() / MS_PER_SECOND;
    const range = Math.ceil(start === null ? DEFAULT_RANGE_SECONDS : Math.max(now - start, STEP_SECONDS));
    const { metrics } = await call.rest('sandboxes.metrics', {
      params: { sandbox_id: sandbox.id },
      query: { range_secs: Math.min(range, MAX_METRICS_RANGE_SECONDS), step_secs: STEP_SECONDS },
    });
    const { vcpus, memory_mib: memoryMib } = specOf(sandbox).resources;
    const samplesOf = (name: keyof typeof metrics) => new Map(metrics[name][0]?.samples ?? []);
    const [memory, disk, diskTotal] = [
      samplesOf('memory_bytes'),
      samplesOf('disk_used_bytes'),
      samplesOf('disk_total_bytes'),
    ];
    const body = [...samplesOf('cpu')]
      .filter(([time]) => end === null || time <= end * MS_PER_SECOND)
      .map(([time, cpu]) => ({
        timestamp: new Date(time).toISOString(),
        timestampUnix: Math.floor(time / MS_PER_SECOND),
        cpuCount: vcpus,
        // Of all its processors; ours is of one.
        cpuUsedPct: cpu / vcpus,
        memUsed: Math.round(memory.get(time) ?? 0),
        memTotal: memoryMib * MIB,
        memCache: 0,
        diskUsed: Math.round(disk.get(time) ?? 0),
        diskTotal: Math.round(diskTotal.get(time) ?? 0),
      }));
    return { status: 200, body };
  },
  'GET /sandboxes/:id/logs': async (_parts, { call, params, query }) => {
    const { id } = await requireSandbox(call, params);
    const start = secondsOf(query, 'start');
    const limit = Math.min(secondsOf(query, 'limit') ?? MAX_LOG_LINES, MAX_LOG_LINES);
    const since = start === null ? {} : { since: new Date(start).toISOString() };
    const { data } = await call.rest('logs.list', {
      params: { sandbox_id: id },
      query: { limit: Math.max(1, limit), sources: 'stdout,stderr,output,system', ...since },
    });
    const logEntries = data.map(({ ts: timestamp, text: message, source }) => ({
      timestamp,
      message,
      level: source === 'stderr' ? 'error' : 'info',
      fields: { source },
    }));
    // E2B's command line reads a line as JSON.
    const logs = logEntries.map(({ timestamp, message, level, fields }) => ({
      timestamp,
      line: JSON.stringify({ timestamp, level, logger: fields.source, message: message.trimEnd() }),
    }));
    return { status: 200, body: { logs, logEntries } };
  },
};

function secondsOf(query: Readonly<Record<string, string>>, field: string): number | null {
  const text = query[field];
  if (text === undefined) return null;
  const seconds = Number(text);
  if (Number.isSafeInteger(seconds) && seconds >= 0) return seconds;
  throw badField(field, 'must be a whole number');
}
