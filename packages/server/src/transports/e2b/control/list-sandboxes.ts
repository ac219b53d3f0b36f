import { badField } from '../../../dispatch/rest-dispatch.ts';
import type { E2bCall } from '../wire/e2b-call.ts';
import type { ControlAnswer, ControlRequest } from './control-route.ts';
import { templateOf, toListed, type OwnSandbox } from './sandbox-words.ts';

const MAX_PAGE = 100;

/** The running sandboxes of the organization by start, newest first unless asked otherwise. */
export async function listRunning(_parts: unknown, { call, query }: ControlRequest): Promise<ControlAnswer> {
  const isAscending = readOrder(query['order']) === 'asc';
  const limit = readLimit(query['limit']);
  if (!(query['state'] ?? 'running').split(',').includes('running')) return { status: 200, body: [] };
  const labels = readMetadata(query['metadata']);
  const after = readAfter(query['startedAfter']);
  const { template } = query;
  const matching = (await listAll(call, labels))
    .filter((sandbox) => sandbox.status === 'running' || sandbox.status === 'temporarily_unavailable')
    .filter((sandbox) => template === undefined || templateOf(sandbox) === template)
    .filter((sandbox) => after === null || startOf(sandbox) > after)
    .toSorted((one, other) => (isAscending ? 1 : -1) * compare(positionOf(one), positionOf(other)));
  const token = readToken(query['nextToken']);
  const rest = matching.filter(
    (sandbox) => token === null || (isAscending ? 1 : -1) * compare(positionOf(sandbox), token) > 0,
  );
  const page = rest.slice(0, limit);
  const last = page.at(-1);
  const body = page.map(toListed);
  if (last === undefined || rest.length === page.length) return { status: 200, body };
  return { status: 200, body, nextToken: Buffer.from(positionOf(last)).toString('base64url') };
}

async function listAll(
  call: E2bCall,
  labels: Readonly<Record<string, string>>,
): Promise<readonly OwnSandbox[]> {
  const filter = Object.keys(labels).length === 0 ? {} : { labels: JSON.stringify(labels) };
  const found: OwnSandbox[] = [];
  for (let cursor: string | null = null; ;) {
    const query = { ...filter, limit: MAX_PAGE, ...(cursor === null ? {} : { cursor }) };
    const page: { readonly data: readonly OwnSandbox[]; readonly next_cursor: string | null } =
      await call.rest('sandboxes.list', { query });
    found.push(...page.data);
    cursor = page.next_cursor;
    if (cursor === null) return found;
  }
}

function startOf({ started_at: startedAt, created_at: createdAt }: OwnSandbox): number {
  return Date.parse(startedAt ?? createdAt);
}

/** Orders sandboxes by start; unique. */
function positionOf(sandbox: OwnSandbox): string {
  return `${new Date(startOf(sandbox)).toISOString()} ${sandbox.id}`;
}

function compare(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

/** The text is a form inside of the query, whose names and values are escaped once more. */
export function readMetadata(text: string | undefined): Readonly<Record<string, string>> {
  if (text === undefined || text === '') return {};
  try {
    const pairs = [...new URLSearchParams(text)];
    return Object.fromEntries(
      pairs.map(([key, value]) => [decodeURIComponent(key), decodeURIComponent(value)]),
    );
  } catch {
    throw badField('metadata', 'has an escape that stands for no text');
  }
}

function readOrder(text: string | undefined): 'asc' | 'desc' {
  if (text === undefined || text === 'desc') return 'desc';
  if (text === 'asc') return text;
  throw badField('order', 'must be asc or desc');
}

export function readLimit(text: string | undefined): number {
  if (text === undefined) return MAX_PAGE;
  const limit = Number(text);
  if (Number.isInteger(limit) && limit >= 1 && limit <= MAX_PAGE) return limit;
  throw badField('limit', `must be 1–${MAX_PAGE}`);
}

function readAfter(text: string | undefined): number | null {
  if (text === undefined) return null;
  const time = Date.parse(text);
  if (Number.isNaN(time)) throw badField('startedAfter', 'must be a time such as 2026-01-02T03:04:05Z');
  return time;
}

function readToken(text: string | undefined): string | null {
  return text === undefined ? null : Buffer.from(text, 'base64url').toString();
}
