import { isErrorCode, PlatformError } from '@svc/contract';
import { getSandbox } from '../../../store/sandboxes.ts';
import { fromE2bId } from '../wire/e2b-address.ts';
import type { E2bCall } from '../wire/e2b-call.ts';
import { E2bRefusal, notOffered } from '../wire/e2b-failure.ts';
import type { ControlAnswer, ControlHandler, ControlRequest, ControlRoutes } from './control-route.ts';
import { listRunning } from './list-sandboxes.ts';
import { policyOf } from './network-words.ts';
import { booleanOf, readNewSandbox, recordOf, secondsOf } from './new-sandbox.ts';
import { LABEL } from './own-labels.ts';
import type { E2bParts } from '../wire/e2b-parts.ts';
import { toDetail, toSandbox, type OwnSandbox } from './sandbox-words.ts';

/** Less than the 60 s after which clients give up. */
const START_WAIT_SECONDS = 55;
const CLEAN_UP_MS = 10_000;
const MS_PER_SECOND = 1000;

const NO_PAUSE =
  'pause is not offered yet: this server would stop the sandbox and lose what runs in it. Keep it running with setTimeout, or keep its disk with createSnapshot';
const NO_FORK =
  'fork is not offered yet: it would lose what runs in the sandbox. Use createSnapshot, and create sandboxes from the snapshot';

export const sandboxRoutes: ControlRoutes = {
  'POST /sandboxes': create,
  'POST /v2/sandboxes': create,
  'GET /sandboxes': listRunning,
  'GET /v2/sandboxes': listRunning,
  'GET /sandboxes/:id': async ({ previews }, { call, tokenOf, params }) => {
    const sandbox = await requireRunning(call, params);
    const volumes = await call.rest('sandboxes.volumes', { params: { sandbox_id: sandbox.id } });
    return { status: 200, body: toDetail({ previews, tokenOf }, sandbox, volumes) };
  },
  'DELETE /sandboxes/:id': async (_parts, { call, params }) => {
    const { id } = await requireSandbox(call, params);
    await call.rest('sandboxes.remove', { params: { sandbox_id: id } });
    return { status: 204 };
  },
  'POST /sandboxes/:id/connect': connect,
  'POST /v2/sandboxes/:id/connect': connect,
  'POST /sandboxes/:id/timeout': async (_parts, { call, params, body }) => {
    const { id } = await requireRunning(call, params);
    await endIn(call, id, secondsOf(body['timeout'], 'timeout'));
    return { status: 204 };
  },
  'POST /sandboxes/:id/refreshes': async (_parts, { call, params, body }) => {
    await lengthen(call, await requireRunning(call, params), secondsOf(body['duration'], 'duration'));
    return { status: 204 };
  },
  'PUT /sandboxes/:id/network': updateNetwork,
  'POST /sandboxes/:id/pause': refuse(NO_PAUSE),
  'POST /sandboxes/:id/resume': refuse(NO_PAUSE),
  'POST /sandboxes/:id/fork': refuse(NO_FORK),
};

/** Of the caller's sandboxes; other callers' are not found. */
export async function requireSandbox(
  call: E2bCall,
  { id }: Readonly<Record<string, string>>,
): Promise<OwnSandbox> {
  const sandboxId = fromE2bId(id);
  if (sandboxId === undefined) throw gone(id ?? '');
  return await call.rest('sandboxes.get', { params: { sandbox_id: sandboxId } });
}

export async function requireRunning(
  call: E2bCall,
  params: Readonly<Record<string, string>>,
): Promise<OwnSandbox> {
  const sandbox = await requireSandbox(call, params);
  // A sandbox that is just not reachable is not gone.
  if (sandbox.status === 'running' || sandbox.status === 'temporarily_unavailable') return sandbox;
  throw gone(params['id'] ?? '');
}

function gone(id: string): E2bRefusal {
  return new E2bRefusal(404, `Sandbox "${id}" doesn't exist or you don't have access to it`);
}

function refuse(sentence: string): ControlHandler {
  return async (_parts, { call, params }) => {
    await requireSandbox(call, params);
    throw notOffered(sentence);
  };
}

async function create(parts: Parameters<ControlHandler>[0], request: ControlRequest): Promise<ControlAnswer> {
  const { call, tokenOf, idempotencyKey: key, identity } = request;
  const { previews, arePortsPublic } = parts;
  const body = await readNewSandbox(request.body, call, { arePortsPublic });
  const query = { start: true, wait_for: 'running', wait_timeout: START_WAIT_SECONDS } as const;
  let made: OwnSandbox;
  try {
    const repeat = key === null ? {} : { repeat: { key, identity } };
    made = await call.rest('sandboxes.create', { query, body }, repeat);
  } catch (error) {
    // A client that may repeat the request finds what it has made.
    if (call.signal.aborted && key === null) await removeByName(call, body.name);
    throw error;
  }
  if (made.status === 'running') return { status: 201, body: toSandbox({ previews, tokenOf }, made) };
  const failure =
    made.status === 'starting' ? TOO_SLOW : await failureOf(parts, made, body.labels?.[LABEL.template] ?? '');
  await removeByName(call, made.name);
  throw failure;
}

const TOO_SLOW = new PlatformError(
  'unavailable',
  'The sandbox did not start in time, perhaps because its image is large; fetch the image first: svc image pull',
);

const NO_IMAGE: ReadonlySet<string> = new Set(['image_pull_failed', 'image_not_found', 'invalid_image']);

/** A template without an image is one that E2B's clients are told does not exist. */
async function failureOf(
  { database }: Pick<E2bParts, 'database'>,
  made: OwnSandbox,
  template: string,
): Promise<Error> {
  const message = made.last_failure_message ?? `The sandbox is ${made.status}`;
  const code = (await getSandbox(database, made.id))?.failureCode ?? '';
  if (NO_IMAGE.has(code)) return new E2bRefusal(404, `template '${template}' not found: ${message}`);
  return new PlatformError(isErrorCode(code) ? code : 'start_failed', message);
}

async function removeByName(call: E2bCall, name: string): Promise<void> {
  const signal = AbortSignal.timeout(CLEAN_UP_MS);
  await call.rest('sandboxes.removeByName', { params: { name } }, { signal }).catch((error: unknown) => {
    if (!PlatformError.is(error)) throw error;
  });
}

/** A sandbox that runs is only ever given more time. */
async function connect(
  { previews }: Parameters<ControlHandler>[0],
  { call, tokenOf, params, body }: ControlRequest,
): Promise<ControlAnswer> {
  const sandbox = await requireRunning(call, params);
  const seconds = secondsOf(body['timeout'], 'timeout');
  return { status: 200, body: toSandbox({ previews, tokenOf }, await lengthen(call, sandbox, seconds)) };
}

async function lengthen(call: E2bCall, sandbox: OwnSandbox, seconds: number): Promise<OwnSandbox> {
  const { ends_at: end } = sandbox;
  if (end === null || Date.parse(end) >= Date.now() + seconds * MS_PER_SECOND) return sandbox;
  return await endIn(call, sandbox.id, seconds);
}

async function endIn(call: E2bCall, id: string, seconds: number): Promise<OwnSandbox> {
  return await call.rest('lifecycle.update', { params: { sandbox_id: id }, body: { ends_in_secs: seconds } });
}

/** Replaces all of it: what is not given is cleared. */
async function updateNetwork(
  _parts: unknown,
  { call, params, body }: ControlRequest,
): Promise<ControlAnswer> {
  const { id } = await requireRunning(call, params);
  const { allow_internet_access: _allowed, ...rest } = body;
  const network = recordOf(body['network'] ?? rest, 'network');
  const policy = policyOf({ allowInternetAccess: booleanOf(body, 'allow_internet_access'), network });
  await call.rest('network.update', { params: { sandbox_id: id }, body: { policy } });
  return { status: 204 };
}
