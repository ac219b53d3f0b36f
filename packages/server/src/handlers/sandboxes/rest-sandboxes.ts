import { randomUUID } from 'node:crypto';
import { MAX_LABELS, PlatformError } from '@svc/contract';
import { badField } from '../../dispatch/rest-dispatch.ts';
import { recordSandboxEvent } from '../../sandboxes/sandbox-events.ts';
import {
  requestRecovery,
  requestRemoval,
  requestStart,
  requestStop,
  type RecoveryAction,
} from '../../sandboxes/desired-state.ts';
import { nameTaken, renameSandbox } from '../../store/new-sandbox.ts';
import { listSandboxPage } from '../../store/sandbox-pages.ts';
import {
  findOwnSandbox,
  getSandbox,
  type SandboxRecord,
  type SandboxReference,
} from '../../store/sandboxes.ts';
import type { Database } from '../../store/database.ts';
import { isUniqueViolation } from '../../store/unique-violation.ts';
import { listMounts } from '../../store/volumes.ts';
import { eventCaller } from '../../dispatch/event-caller.ts';
import type { CreateSandboxRequest } from '@svc/contract/rest';
import { checkSandbox } from '../../sandboxes/check-sandbox.ts';
import type { NetworkCeilings } from '../../sandboxes/network-ceilings.ts';
import { makeSandbox } from '../../sandboxes/make-sandbox.ts';
import { readCreateSandbox } from './read-create-sandbox.ts';
import type { HostStorage } from '../../accounting/host-storage.ts';
import type { EngineHealth } from '../../orchestrator/engine-health.ts';
import type { Orchestrator } from '../../orchestrator/orchestrator.ts';
import type { Convergence } from '../../sandboxes/convergence.ts';
import type { Sealer } from '../../secrets/sealer.ts';
import { readPage, toPage } from '../../dispatch/paging.ts';
import { requireEngine } from '../../orchestrator/require-engine.ts';
import type { RestCall } from '../../dispatch/rest-call.ts';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';
import { viewFor } from './sandbox-view.ts';
import { Waiters, type WaitParts, type WaitQuery } from './wait-for-running.ts';

/** Metrics of a sandbox are in rest-metrics.ts. */
type SandboxHandlers = Omit<
  Pick<RestHandlers, Extract<keyof RestHandlers, `sandboxes.${string}`>>,
  'sandboxes.metrics'
>;

const LIST = 'sandboxes';

export interface SandboxParts extends WaitParts {
  readonly orchestrator: Orchestrator;
  readonly health: EngineHealth;
  readonly storage: HostStorage;
  readonly sealer: Sealer;
  readonly convergence: Convergence;
  /** Addresses of this host that callers may publish ports on, beside loopback. */
  readonly publishAddresses: readonly string[];
  readonly networkCeilings: NetworkCeilings;
  /** After an outage, sandboxes recover automatically for this long; then a member must decide. */
  readonly recoveryMs: number;
}

export function sandboxHandlers(parts: SandboxParts): SandboxHandlers {
  const waiters = new Waiters(parts);
  return {
    ...readHandlers(parts.database),
    'sandboxes.create': async ({ query, body }, call) => {
      using waiter = waiters.reserve(query, call);
      const isStarted = query.start ?? false;
      const record =
        (await findAdmitted(parts, call)) ??
        (await createSandbox(parts, call, { id: randomUUID(), body, isStarted }));
      return await answer(call, waiter.wait(record));
    },
    'sandboxes.update': ({ params, body }, call) => rename(call, params.sandbox_id, body),
    'sandboxes.start': ({ params, query }, call) => start(parts, waiters, call, byId(params), query),
    'sandboxes.startByName': ({ params, query }, call) => start(parts, waiters, call, params, query),
    'sandboxes.stop': ({ params }, call) => stop(parts, call, byId(params)),
    'sandboxes.stopByName': ({ params }, call) => stop(parts, call, params),
    'sandboxes.remove': ({ params }, call) => remove(parts, call, byId(params)),
    'sandboxes.removeByName': ({ params }, call) => remove(parts, call, params),
    'sandboxes.recover': ({ params, body }, call) => recover(parts, call, byId(params), body.action),
    'sandboxes.recoverByName': ({ params, body }, call) => recover(parts, call, params, body.action),
  };
}

function readHandlers(
  database: Database,
): Pick<SandboxHandlers, 'sandboxes.list' | 'sandboxes.get' | 'sandboxes.getByName' | 'sandboxes.volumes'> {
  return {
    'sandboxes.list': async ({ query }, call) => {
      const page = readPage(query, LIST, 2);
      const [createdAt, id] = (page.after ?? []).map(String);
      const rows = await listSandboxPage(database, {
        organizationId: call.organization.id,
        labels: readLabels(query.labels),
        limit: page.limit,
        after: createdAt === undefined || id === undefined ? null : { createdAt, id },
      });
      return toPage(rows, page, LIST, (row) => [row.createdAt, row.id], viewFor(call));
    },
    'sandboxes.get': ({ params }, call) => answer(call, requireSandbox(database, call, byId(params))),
    'sandboxes.getByName': ({ params }, call) => answer(call, requireSandbox(database, call, params)),
    'sandboxes.volumes': async ({ params }, call) => {
      const { id } = await requireSandbox(database, call, byId(params));
      const mounts = await listMounts(database, id);
      return mounts.map(({ volumeId, name, mountPath, isReadOnly }) => ({
        volume_id: volumeId,
        name,
        mount_path: mountPath,
        read_only: isReadOnly,
      }));
    },
  };
}

/** Writes down a sandbox and, with `isStarted`, that it should run; the rest happens in the background. */
async function createSandbox(
  parts: SandboxParts,
  call: RestCall,
  request: { readonly id: string; readonly body: CreateSandboxRequest; readonly isStarted: boolean },
): Promise<SandboxRecord> {
  const { orchestrator, sealer, publishAddresses, networkCeilings } = parts;
  const { id, body, isStarted } = request;
  const sandbox = checkSandbox(readCreateSandbox(body, call), publishAddresses);
  if (isStarted) requireEngine(parts.health);
  await parts.storage.require();
  // The start runs in parallel with the fsync of the record: a record that a power loss destroys was not answered yet.
  const begin = () => (isStarted ? parts.convergence.convergeSoon(id, { isNew: true }) : undefined);
  return await makeSandbox(
    { orchestrator, sealer, networkCeilings },
    { id, organization: call.organization, sandbox, isStarted, caller: eventCaller(call) },
    (work) => call.commit(({ db }) => work(db), viewFor(call), begin),
  );
}

async function start(
  parts: SandboxParts,
  waiters: Waiters,
  call: RestCall,
  reference: SandboxReference,
  query: WaitQuery,
) {
  using waiter = waiters.reserve(query, call);
  const admitted = await findAdmitted(parts, call);
  if (admitted !== undefined) return await answer(call, waiter.wait(admitted));
  requireEngine(parts.health);
  await parts.storage.require();
  const record = await change(parts, call, reference, async (db, found) => {
    requireEngine(parts.health, undefined, found.node);
    return await requestStart(db, call.organization, found, eventCaller(call));
  });
  return await answer(call, waiter.wait(record));
}

/** The sandbox that an earlier call with the same key made or started, and whose answer was not seen. */
async function findAdmitted({ database }: SandboxParts, call: RestCall): Promise<SandboxRecord | undefined> {
  if (call.admitted === null) return undefined;
  // Written by `viewFor` in the transaction of that call.
  const { id } = call.admitted as { readonly id: string };
  return await getSandbox(database, id);
}

const STOP_LATER =
  'a sandbox that is temporarily_unavailable is stopped as soon as the engine is back when you POST {"action":"stop"} to its /recover (`svc recover NAME stop`)';

async function stop(parts: SandboxParts, call: RestCall, reference: SandboxReference) {
  requireEngine(parts.health, STOP_LATER);
  return await answer(
    call,
    change(parts, call, reference, async (db, found) => {
      requireEngine(parts.health, STOP_LATER, found.node);
      return await requestStop(db, found, eventCaller(call));
    }),
  );
}

async function remove(parts: SandboxParts, call: RestCall, reference: SandboxReference) {
  requireEngine(parts.health);
  const respond = ({ name }: SandboxRecord) => ({ message: `Sandbox '${name}' is scheduled for deletion` });
  const record = await call.commit(async ({ db }) => {
    const found = await requireSandbox(db, call, reference);
    requireEngine(parts.health, undefined, found.node);
    requireVersion(call, found);
    return await requestRemoval(db, found, eventCaller(call));
  }, respond);
  parts.convergence.convergeSoon(record.id);
  return respond(record);
}

/** Also while the engine is away: the choice is carried out when it is back. */
async function recover(
  parts: SandboxParts,
  call: RestCall,
  reference: SandboxReference,
  action: RecoveryAction,
) {
  const { recoveryMs } = parts;
  const record = await change(parts, call, reference, (db, found) =>
    requestRecovery(db, found, action, recoveryMs, eventCaller(call)),
  );
  return await answer(call, record);
}

async function rename(
  call: RestCall,
  id: string,
  { name, slug }: { readonly name?: string | null; readonly slug?: string | null },
) {
  const asked = {
    ...(typeof name === 'string' ? { name } : {}),
    ...(typeof slug === 'string' ? { slug } : {}),
  };
  try {
    const record = await call.commit(async ({ db }) => {
      const found = await requireSandbox(db, call, { id });
      requireVersion(call, found);
      const renamed = await renameSandbox(db, found, asked);
      if (renamed.version === found.version) return found;
      const before = { previous_name: found.name, previous_slug: found.slug, slug: renamed.slug };
      await recordSandboxEvent(db, 'sandbox_renamed', renamed, eventCaller(call), before);
      return renamed;
    }, viewFor(call));
    return await answer(call, record);
  } catch (error) {
    // Slugs are unique over all organizations, which do not wait for each other.
    if (typeof slug === 'string' && isUniqueViolation(error)) throw nameTaken('slug', slug);
    throw error;
  }
}

/** Stores the desired state of a sandbox and wakes the convergence, unless nothing changed. */
async function change(
  { convergence }: SandboxParts,
  call: RestCall,
  reference: SandboxReference,
  work: (db: Database, found: SandboxRecord) => Promise<SandboxRecord>,
): Promise<SandboxRecord> {
  let hasChanged = false;
  const record = await call.commit(async ({ db }) => {
    const found = await requireSandbox(db, call, reference);
    requireVersion(call, found);
    const wanted = await work(db, found);
    hasChanged = wanted.version !== found.version;
    return wanted;
  }, viewFor(call));
  if (hasChanged) convergence.convergeSoon(record.id);
  return record;
}

export async function answer(call: RestCall, found: SandboxRecord | Promise<SandboxRecord>) {
  const record = await found;
  call.setHeader('etag', `"${record.version}"`);
  return viewFor(call)(record);
}

export async function requireSandbox(
  db: Database,
  call: Pick<RestCall, 'organization'>,
  reference: SandboxReference,
): Promise<SandboxRecord> {
  const found = await findOwnSandbox(db, call.organization.id, reference);
  if (found !== undefined) return found;
  const message =
    'id' in reference ? `There is no sandbox ${reference.id}` : `There is no sandbox '${reference.name}'`;
  throw new PlatformError('sandbox_not_found', message, { details: { ...reference } });
}

export function requireVersion(call: RestCall, { version }: SandboxRecord): void {
  if (call.expectedVersion === null || call.expectedVersion === version) return;
  const message = `The sandbox has changed since it was read; its ETag is "${version}" now`;
  throw new PlatformError('precondition_failed', message, { details: { version } });
}

function byId({ sandbox_id: id }: { readonly sandbox_id: string }): SandboxReference {
  return { id };
}

function readLabels(text: string | undefined): Readonly<Record<string, string>> {
  if (text === undefined) return {};
  const labels = parse(text);
  const isMap = typeof labels === 'object' && labels !== null && !Array.isArray(labels);
  const words = isMap ? Object.entries(labels).flat() : [];
  const isLegal = words.every((word) => typeof word === 'string' && !word.includes('\0'));
  if (!isMap || !isLegal || words.length > 2 * MAX_LABELS) {
    const reason = `must be a JSON object of at most ${MAX_LABELS} strings, such as {"team":"ml"}`;
    throw badField('labels', reason);
  }
  // Every value was seen to be text.
  return labels as Readonly<Record<string, string>>;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Refused by the caller like every other text that is no object.
    return undefined;
  }
}
