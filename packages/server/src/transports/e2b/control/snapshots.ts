import { setTimeout as delay } from 'node:timers/promises';
import { isErrorCode, PlatformError } from '@svc/contract';
import type { Snapshot } from '@svc/contract/rest';
import { randomBytes } from 'node:crypto';
import { fromE2bId, toE2bId } from '../wire/e2b-address.ts';
import type { E2bCall } from '../wire/e2b-call.ts';
import { E2bRefusal, notOffered } from '../wire/e2b-failure.ts';
import type { ControlHandler, ControlRoutes } from './control-route.ts';
import { readLimit } from './list-sandboxes.ts';
import { booleanOf } from './new-sandbox.ts';
import { requireRunning } from './sandboxes.ts';
import { findSnapshot, isTemplate } from './template.ts';

/** Polls the store, because another server may make the snapshot. */
const FIRST_POLL_MS = 10;
const MOST_POLL_MS = 100;
const NAME_BYTES = 8;
const PAGE = 100;
const NO_BUILDS =
  'Building templates is not offered yet. Use the reference of an image as template, or create a sandbox, change it, and create sandboxes from its snapshot';

export const snapshotRoutes: ControlRoutes = {
  'POST /sandboxes/:id/snapshots': async (_parts, { call, params, body }) => {
    booleanOf(body, 'memory');
    const { id } = await requireRunning(call, params);
    const name = typeof body['name'] === 'string' && body['name'] !== '' ? body['name'] : newName();
    const request = { kind: 'disk', sandbox_id: id, name, force: true } as const;
    const { id: operation } = await call.rest('snapshots.create', { body: request });
    return { status: 201, body: toSnapshot(await waitFor(call, operation)) };
  },
  'GET /snapshots': async (_parts, { call, query }) => {
    const limit = readLimit(query['limit']);
    const origin = fromE2bId(query['sandboxID']);
    const all = (await listAll(call)).filter(
      (snapshot) =>
        (query['sandboxID'] === undefined || snapshot.sandbox_id === origin) &&
        (query['name'] === undefined || snapshot.name === query['name']),
    );
    const from = Number(query['nextToken'] ?? 0);
    const page = all.slice(from, from + limit).map(toSnapshot);
    const isLast = from + limit >= all.length;
    return { status: 200, body: page, ...(isLast ? {} : { nextToken: String(from + limit) }) };
  },
  'DELETE /templates/:id': async (_parts, { call, params }) => {
    const id = await findSnapshot(params['id'] ?? '', call);
    if (id === undefined) throw new E2bRefusal(404, `There is no snapshot ${params['id']}`);
    await call.rest('snapshots.remove', { params: { snapshot_id: id } });
    return { status: 204 };
  },
  'GET /templates/aliases/:name': async (_parts, { call, params }) => {
    const name = params['name'] ?? '';
    if (await isTemplate(name, call)) return { status: 200, body: { templateID: name, public: false } };
    throw new E2bRefusal(
      404,
      `There is no template ${name}; a sandbox may be created from the reference of an image`,
    );
  },
  'GET /templates': async (_parts, { call }) => ({
    status: 200,
    body: (await listAll(call)).map(toTemplate),
  }),
  'GET /v2/templates': async (_parts, { call }) => ({
    status: 200,
    body: (await listAll(call)).map(toTemplate),
  }),
  'POST /templates': refuseBuild,
  'POST /v2/templates': refuseBuild,
  'POST /v3/templates': refuseBuild,
  'POST /templates/tags': refuseBuild,
  'DELETE /templates/tags': refuseBuild,
  'PATCH /v2/templates/:id': refuseBuild,
};

async function refuseBuild(...[, { call }]: Parameters<ControlHandler>): Promise<never> {
  // The key is checked by the operation before its reason is shown.
  await call.rest('snapshots.list', { query: { limit: 1 } });
  throw notOffered(NO_BUILDS);
}

async function waitFor(call: E2bCall, operationId: string): Promise<Snapshot> {
  for (let pauseMs = FIRST_POLL_MS; ; pauseMs = Math.min(2 * pauseMs, MOST_POLL_MS)) {
    const { result, error } = await call.rest('snapshots.getOperation', {
      params: { operation_id: operationId },
    });
    if (result !== null) return result;
    if (error !== null)
      throw new PlatformError(isErrorCode(error.code) ? error.code : 'internal', error.message);
    await delay(pauseMs, undefined, { signal: call.signal });
  }
}

async function listAll(call: E2bCall): Promise<readonly Snapshot[]> {
  const found: Snapshot[] = [];
  for (let cursor: string | null = null; ;) {
    const query = { limit: PAGE, ...(cursor === null ? {} : { cursor }) };
    const page: { readonly data: readonly Snapshot[]; readonly next_cursor: string | null } = await call.rest(
      'snapshots.list',
      { query },
    );
    found.push(...page.data);
    cursor = page.next_cursor;
    if (cursor === null) return found;
  }
}

function toSnapshot({ id, name }: Snapshot): object {
  return { snapshotID: toE2bId(id), names: [name] };
}

function toTemplate({ id, name, created_at: createdAt, size_bytes: bytes }: Snapshot): object {
  return {
    templateID: toE2bId(id),
    buildID: id,
    aliases: [name],
    names: [name],
    public: false,
    cpuCount: 1,
    memoryMB: 512,
    diskSizeMB: Math.ceil(bytes / 2 ** 20),
    createdAt,
    updatedAt: createdAt,
    createdBy: null,
    lastSpawnedAt: null,
    spawnCount: 0,
    buildCount: 1,
    envdVersion: '',
    buildStatus: 'ready',
  };
}

function newName(): string {
  return `e2b-${randomBytes(NAME_BYTES).toString('hex')}`;
}
