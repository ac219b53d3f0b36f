import { setTimeout as delay } from 'node:timers/promises';
import { PlatformError } from '@svc/contract/errors';
import type { EngineClient, LogEntry, ReadLogs } from '@svc/engine/client';

const POLL_MS = 300;

/** The log of a sandbox as it grows, until its run has ended; then what was written last. Every entry once. */
export async function* followLogs(
  engine: EngineClient,
  name: string,
  options: ReadLogs,
): AsyncGenerator<LogEntry> {
  const ended = new AbortController();
  const isKept = watchForEnd(engine, name, ended);
  let last: LogEntry | undefined;
  try {
    for await (const entry of engine.logs(name, { ...options, follow: true }, ended.signal)) {
      last = entry;
      yield entry;
    }
  } catch (error) {
    if (!ended.signal.aborted) throw error;
  } finally {
    ended.abort();
  }
  if (!(await isKept)) return;
  const { tail, ...rest } = options;
  // A tail counts from the end; a cursor says exactly where we are.
  const place = last === undefined ? (tail === undefined ? {} : { tail }) : { cursor: last.cursor };
  yield* engine.logs(name, { ...rest, ...place, follow: false });
}

/** Aborts when the run is over; tells whether the sandbox, and with it the log, is still there. */
async function watchForEnd(engine: EngineClient, name: string, ended: AbortController): Promise<boolean> {
  while (!ended.signal.aborted) {
    const sandbox = await engine.getSandbox(name).catch((error: unknown) => {
      if (PlatformError.is(error, 'sandbox_not_found')) return undefined;
      throw error;
    });
    if (sandbox !== undefined && ['starting', 'running', 'stopping'].includes(sandbox.state)) {
      await delay(POLL_MS);
      continue;
    }
    ended.abort();
    return sandbox !== undefined;
  }
  return true;
}
