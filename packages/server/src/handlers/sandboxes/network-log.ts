import type { NetworkLogEntry, NetworkLogLine, ReadNetworkLog } from '@svc/contract/orchestrator';
import type { ServerEvent } from '@svc/contract/rest';
import type { RestCall } from '../../dispatch/rest-call.ts';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';
import type { Orchestrator } from '../../orchestrator/orchestrator.ts';
import type { Database } from '../../store/database.ts';
import { invalidCursor, openLog } from './open-log.ts';

const DEFAULT_LIMIT = 100;

export function networkLogHandlers(
  database: Database,
  orchestrator: Pick<Orchestrator, 'get' | 'networkLog'>,
): Pick<RestHandlers, 'network.log' | 'network.follow'> {
  const open = async (
    call: Pick<RestCall, 'organization' | 'signal'>,
    sandboxId: string,
    options: ReadNetworkLog,
  ): Promise<AsyncIterable<NetworkLogLine>> =>
    await openLog(database, orchestrator, { call, sandboxId }, (id, signal) =>
      orchestrator.networkLog(id, options, signal),
    );
  return {
    'network.log': async ({ params, query }, call) => {
      const { limit = DEFAULT_LIMIT } = query;
      const options = { ...placeOf(query.cursor), ...verdictOf(query.verdict) };
      return await readPage(await open(call, params.sandbox_id, options), limit);
    },
    'network.follow': async ({ params, query, headers }, call) => {
      const options = { ...placeOf(headers['last-event-id']), ...verdictOf(query.verdict), follow: true };
      return toEvents(await open(call, params.sandbox_id, options));
    },
  };
}

async function* toEvents(lines: AsyncIterable<NetworkLogLine>): AsyncGenerator<ServerEvent> {
  for await (const line of lines) {
    if ('leftOut' in line) yield { event: 'left_out', data: { count: line.leftOut } };
    else {
      const { cursor, ...data } = toView(line.entry);
      yield { event: 'decision', id: cursor, data };
    }
  }
  yield { event: 'end', data: {} };
}

/** The log is bounded, so it is read to its end, where it says how much was dropped. */
async function readPage(lines: AsyncIterable<NetworkLogLine>, limit: number) {
  const data: ReturnType<typeof toView>[] = [];
  let leftOut = 0;
  let hasMore = false;
  for await (const line of lines) {
    if ('leftOut' in line) leftOut = line.leftOut;
    else if (data.length < limit) data.push(toView(line.entry));
    else hasMore = true;
  }
  const next = hasMore ? (data.at(-1)?.cursor ?? null) : null;
  return { data, has_more: hasMore, next_cursor: next, left_out: leftOut };
}

function toView(entry: NetworkLogEntry) {
  const { sequence, firstTime, time, decidedBy, secret, ...rest } = entry;
  const { kind, verdict, host, address, port, protocol, rule, reason, count } = rest;
  return {
    cursor: String(sequence),
    first_ts: firstTime,
    ts: time,
    count,
    kind,
    verdict,
    host,
    address,
    port,
    protocol,
    decided_by: decidedBy,
    rule,
    reason,
    secret: secret === null ? null : toRequest(secret),
  };
}

function toRequest({ action, method, path, envVars }: NonNullable<NetworkLogEntry['secret']>) {
  return { action, method, path, env_vars: [...envVars] };
}

function verdictOf(verdict: 'allow' | 'deny' | undefined): Pick<ReadNetworkLog, 'verdict'> {
  return verdict === undefined ? {} : { verdict };
}

function placeOf(cursor: string | undefined): Pick<ReadNetworkLog, 'after'> {
  if (cursor === undefined || cursor === '') return {};
  const after = Number(cursor);
  if (/^\d{1,16}$/.test(cursor) && Number.isSafeInteger(after)) return { after };
  throw invalidCursor();
}
