import type { LogEntry, LogSource, ReadLogs } from '@svc/contract/orchestrator';
import type { ServerEvent } from '@svc/contract/rest';
import { readTime } from '../../dispatch/read-time.ts';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';
import type { Database } from '../../store/database.ts';
import type { Orchestrator } from '../../orchestrator/orchestrator.ts';
import type { RestCall } from '../../dispatch/rest-call.ts';
import { invalidCursor, openLog } from './open-log.ts';
import { isReferenceClient } from './reference-client.ts';

const DEFAULT_LIMIT = 100;
/** A page ends early when its texts reach this length. */
const MAX_PAGE_TEXT = 4 * 1024 * 1024;

export function logHandlers(
  database: Database,
  orchestrator: Pick<Orchestrator, 'get' | 'logs'>,
): Pick<RestHandlers, 'logs.follow' | 'logs.list'> {
  const open = async (
    call: Pick<RestCall, 'organization' | 'signal'>,
    sandboxId: string,
    options: ReadLogs,
  ): Promise<AsyncIterable<LogEntry>> =>
    await openLog(database, orchestrator, { call, sandboxId }, (id, signal) => {
      if (options.cursor !== undefined) requireCursor(options.cursor);
      return orchestrator.logs(id, options, signal);
    });
  return {
    'logs.follow': async ({ params, query, headers }, call) => {
      const cursor = headers['last-event-id'];
      const options = { ...sourcesOf(query.sources), ...cursorOf(cursor), follow: true };
      const entries = await open(call, params.sandbox_id, options);
      return toEvents(isReferenceClient(call) ? withLineEnds(entries) : entries);
    },
    'logs.list': async ({ params, query }, { organization, signal }) => {
      const { tail, limit = DEFAULT_LIMIT } = query;
      const range = { since: timeOf('since', query.since), until: timeOf('until', query.until) };
      const options = {
        ...sourcesOf(query.sources),
        ...cursorOf(query.cursor),
        ...(tail === undefined ? {} : { tail }),
      };
      const over = new AbortController();
      const call = { organization, signal: AbortSignal.any([signal, over.signal]) };
      try {
        const entries = await open(call, params.sandbox_id, options);
        return await readPage(entries, range, limit);
      } finally {
        over.abort();
      }
    },
  };
}

async function* toEvents(entries: AsyncIterable<LogEntry>): AsyncGenerator<ServerEvent> {
  for await (const { source, time, text, cursor } of entries) {
    yield { event: 'log', id: cursor, data: { source, ts: time, text } };
  }
  yield { event: 'end', data: {} };
}

/** The reference client prints texts as they come, and lines of svc itself have no line end. */
async function* withLineEnds(entries: AsyncIterable<LogEntry>): AsyncGenerator<LogEntry> {
  for await (const entry of entries)
    yield entry.source === 'system' ? { ...entry, text: `${entry.text}\n` } : entry;
}

async function readPage(
  entries: AsyncIterable<LogEntry>,
  range: { readonly since: string | null; readonly until: string | null },
  limit: number,
) {
  const data: { cursor: string; ts: string; source: LogSource; text: string; process: string | null }[] = [];
  let length = 0;
  let hasMore = false;
  for await (const { time, cursor, source, text, process } of entries) {
    if (range.since !== null && time < range.since) continue;
    if (range.until !== null && time > range.until) break;
    if (data.length >= limit || (data.length > 0 && length + text.length > MAX_PAGE_TEXT)) {
      hasMore = true;
      break;
    }
    length += text.length;
    data.push({ cursor, ts: time, source, text, process });
  }
  return { data, has_more: hasMore, next_cursor: hasMore ? (data.at(-1)?.cursor ?? null) : null };
}

function sourcesOf(sources: string | undefined): Pick<ReadLogs, 'sources'> {
  // The schema of the query has checked the values.
  return sources === undefined ? {} : { sources: sources.split(',') as LogSource[] };
}

function cursorOf(cursor: string | undefined): Pick<ReadLogs, 'cursor'> {
  return cursor === undefined || cursor === '' ? {} : { cursor };
}

/** In the form of the log's own times, which sort as text. */
function timeOf(field: string, text: string | undefined): string | null {
  if (text === undefined) return null;
  return new Date(readTime(field, text)).toISOString();
}

const EMPTY_CURSOR = 'AA==';
const CURSOR_BYTES = 17;

/** Base64 of a count of 1 and two 64-bit numbers, as in the orchestrator's log. */
function requireCursor(cursor: string): void {
  const bytes = Buffer.from(cursor, 'base64');
  const isCanonical = bytes.toString('base64') === cursor;
  if (cursor === EMPTY_CURSOR || (isCanonical && bytes.length === CURSOR_BYTES && bytes[0] === 1)) return;
  throw invalidCursor();
}
