import { callOptionsOf, withBudgetEach, type CallOptions } from '../client/call-budget.ts';
import type { Client } from '../client/client.ts';
import { followEvents } from '../client/follow-events.ts';
import type { OptionNames } from '../client/known-options.ts';
import { eachItem } from '../client/pages.ts';
import type { StreamEvent } from '../client/server-events.ts';

/** `output` is the output of terminals; `system` has events of the sandbox. */
export type LogSource = 'stdout' | 'stderr' | 'output' | 'system';

export interface LogEntry {
  readonly source: LogSource;
  /** RFC 3339. */
  readonly time: string;
  /** As it was written: not always whole lines. */
  readonly text: string;
  /** Pass it as `after` to continue after this entry. */
  readonly cursor: string;
}

export interface LogOptions extends CallOptions {
  /** Follows the log until the sandbox stops. Survives lost connections without losing or repeating anything. */
  readonly follow?: boolean;
  /** All but `system` unless given. */
  readonly sources?: readonly LogSource[];
  /** Begin with the last entries, this many. */
  readonly tail?: number;
  /** RFC 3339. */
  readonly since?: string;
  readonly until?: string;
  /** Cursor of the last entry that was seen. */
  readonly after?: string;
}

const PAGE = 1000;
const LOG_OPTIONS: OptionNames<Omit<LogOptions, keyof CallOptions>> = {
  follow: true,
  sources: true,
  tail: true,
  since: true,
  until: true,
  after: true,
};

/** Oldest first. @throws SvcError */
export async function* readLogs(
  client: Client,
  sandboxId: string,
  options: LogOptions,
): AsyncGenerator<LogEntry, void> {
  const call = callOptionsOf(options, LOG_OPTIONS);
  let last = options.after;
  const isBounded = options.tail !== undefined || options.since !== undefined || options.until !== undefined;
  if (isBounded || options.follow !== true) {
    for await (const entry of readPast(client, sandboxId, options, call)) {
      last = entry.cursor;
      yield entry;
    }
  }
  if (options.follow === true && options.until === undefined) {
    yield* followFrom(client, sandboxId, { sources: options.sources, after: last, call });
  }
}

async function* readPast(
  client: Client,
  sandboxId: string,
  options: LogOptions,
  call: CallOptions,
): AsyncGenerator<LogEntry, void> {
  const { sources, tail, since, until, after } = options;
  const query = {
    limit: PAGE,
    ...sourcesOf(sources),
    ...(since === undefined ? {} : { since }),
    ...(until === undefined ? {} : { until }),
  };
  // Pages after the first begin behind their cursor, not at the tail.
  const first = {
    ...(tail === undefined ? {} : { tail }),
    ...(after === undefined ? {} : { cursor: after }),
  };
  const entries = eachItem((cursor) =>
    client.call(
      'logs.list',
      {
        params: { sandbox_id: sandboxId },
        query: { ...query, ...(cursor.cursor === undefined ? first : cursor) },
      },
      call,
    ),
  );
  for await (const { source, ts, text, cursor } of entries) yield { source, time: ts, text, cursor };
}

interface Following {
  readonly sources: readonly LogSource[] | undefined;
  readonly after: string | undefined;
  readonly call: CallOptions;
}

async function* followFrom(
  client: Client,
  sandboxId: string,
  { sources, after, call }: Following,
): AsyncGenerator<LogEntry, void> {
  const query = sourcesOf(sources);
  const events = withBudgetEach(call, (budget) =>
    followEvents(budget, (lastId = after) => {
      const headers = lastId === undefined ? {} : { 'last-event-id': lastId };
      const input = { params: { sandbox_id: sandboxId }, query, headers };
      return client.call('logs.follow', input, { signal: budget.signal });
    }),
  );
  for await (const event of events) {
    const entry = toEntry(event);
    if (entry !== undefined) yield entry;
  }
}

function sourcesOf(sources: readonly LogSource[] | undefined): { readonly sources?: string } {
  return sources === undefined ? {} : { sources: sources.join(',') };
}

function toEntry({ event, data, id }: StreamEvent): LogEntry | undefined {
  if (event !== 'log' || id === null) return undefined;
  // Of the server we talk to all the time.
  const { source, ts, text } = data as {
    readonly source: LogSource;
    readonly ts: string;
    readonly text: string;
  };
  return { source, time: ts, text, cursor: id };
}
