import { PlatformError } from '@svc/contract/errors';
import type {
  CreateSandbox,
  LifecycleUpdate,
  LogSource,
  ReadLogs,
  SpaceUser,
  SpareProcess,
} from '@svc/contract/orchestrator';
import type { Logger } from 'pino';
import { EVENT_TYPES, type Capabilities, type ReadEvents } from '../client/engine-api.ts';
import { readProcessState } from '../host/process-state.ts';
import type { Kit } from '../sandboxes/kit.ts';
import type { Sandboxes } from '../sandboxes/sandboxes.ts';
import type { Sampler } from '../metrics/sampler.ts';
import { fields, optional, readId, readNetworkCeiling, readSecretValues, required } from './fields.ts';
import type { Call, Routes } from './http-server.ts';
import { imageRoutes, readAuth, readMaxHeldBytes, readScope, type BuildDemo } from './image-routes.ts';
import { networkRoutes } from './network-routes.ts';
import { sendLines, sendProgress } from './streams.ts';
import { volumeRoutes } from './volume-routes.ts';

export interface Daemon {
  readonly kit: Kit;
  readonly sandboxes: Sandboxes;
  readonly sampler: Sampler;
  readonly capabilities: () => Capabilities;
  readonly buildDemo: BuildDemo;
  readonly logger: Logger;
}

/** Our process id: a watchdog inspects the process when it no longer answers. */
const ownPulse = { pid: process.pid, startTime: readProcessState(process.pid)?.startTime ?? '' };

/** Every route of the engine. */
export function createRoutes(daemon: Daemon): Routes {
  const { kit } = daemon;
  return {
    ...sandboxRoutes(daemon),
    ...snapshotRoutes(kit, daemon.sandboxes),
    ...imageRoutes(kit, daemon),
    ...volumeRoutes(kit),
    ...networkRoutes(kit, daemon.sandboxes),
  };
}

function sandboxRoutes({ kit, sandboxes, sampler, capabilities }: Daemon): Routes {
  const id = (call: Call) => call.params['id'] ?? '';
  return {
    'GET /pulse': async () => await Promise.resolve(ownPulse),
    'GET /capabilities': async () => await Promise.resolve(capabilities()),
    'GET /space': async () => await Promise.resolve(kit.space.view()),
    'GET /space/users': async () => await listSpaceUsers(kit, sandboxes),
    'GET /metrics': async () => await Promise.resolve(sampler.read(sandboxes.list())),
    'GET /pool': async () => await Promise.resolve(sandboxes.warm.view()),
    'GET /events': (call) => stream(call, kit.events.read(readEvents(call.query), call.signal)),
    'GET /sandboxes': async () => await Promise.resolve(sandboxes.list().map((sandbox) => sandbox.view())),
    'POST /sandboxes': async (call) => {
      const request = readCreate(await call.json());
      // A caller that leaves during the pull cancels the create; once the sandbox is being made, the create is finished or undone completely.
      return await sendProgress(call, (onProgress) => sandboxes.create(request, onProgress, call.signal));
    },
    'POST /sandboxes/check': async (call) => {
      await sandboxes.check(readCreate(await call.json()));
      return {};
    },
    'GET /sandboxes/:id': async (call) => await Promise.resolve(sandboxes.get(id(call)).view()),
    'DELETE /sandboxes/:id': async (call) => ({ sequence: await sandboxes.remove(id(call)) }),
    'POST /sandboxes/:id/start': async (call) => {
      const secretValues = readSecretValues(fields(await call.json())['secretValues']);
      return await sandboxes.start(id(call), { secretValues });
    },
    'POST /sandboxes/:id/stop': async (call) => {
      return await sandboxes.stop(id(call), readGrace(await call.json()));
    },
    'POST /sandboxes/:id/expect-process': async (call) => {
      const process = readSpareProcess(await call.json());
      await sandboxes.expectProcess(id(call), process);
      return {};
    },
    'PUT /sandboxes/:id/lifecycle': async (call) =>
      await sandboxes.setLifecycle(id(call), readLifecycle(await call.json())),
    'GET /sandboxes/:id/logs': (call) =>
      stream(call, sandboxes.get(id(call)).logs(readLogs(call.query), call.signal)),
  };
}

async function stream(call: Call, items: AsyncIterable<unknown>): Promise<undefined> {
  await sendLines(call.response, items);
  return undefined;
}

/** While a sandbox is stopping, every other call for it waits, also its removal. */
const MAX_GRACE_MS = 10 * 60_000;

/** The ranges of the numbers are checked with the spec. */
function readLifecycle(body: unknown): LifecycleUpdate {
  const given = fields(body);
  const read = (name: keyof LifecycleUpdate) =>
    given[name] === null ? null : required(given, name, 'number');
  return { max_duration_secs: read('max_duration_secs'), idle_timeout_secs: read('idle_timeout_secs') };
}

function readGrace(body: unknown): number | undefined {
  const graceMs = optional(fields(body), 'graceMs', 'number');
  if (graceMs === undefined || (Number.isInteger(graceMs) && graceMs >= 0 && graceMs <= MAX_GRACE_MS))
    return graceMs;
  throw new PlatformError('invalid_request', `graceMs: must be a whole number from 0 to ${MAX_GRACE_MS}`, {
    details: { field: 'graceMs' },
  });
}

const CREATE_FIELDS = new Set([
  'id',
  'spec',
  'isolation',
  'registryAuth',
  'secretValues',
  'start',
  'volumes',
  'hostVolume',
  'snapshot',
  'imageScope',
  'maxHeldBytes',
  'hostFolder',
  'networkCeiling',
  'cgroupParent',
]);

function readSpareProcess(body: unknown): SpareProcess {
  const given = fields(body);
  const { args } = given;
  if (!Array.isArray(args) || !args.every((arg) => typeof arg === 'string'))
    throw new PlatformError('invalid_request', 'args: must be texts', { details: { field: 'args' } });
  return {
    key: required(given, 'key', 'string'),
    cmd: required(given, 'cmd', 'string'),
    args,
    stdinFd: required(given, 'stdinFd', 'number'),
  };
}

/** SAFETY: exactly one folder below a root: no separator, and not `..`. */
const HOST_FOLDER = /^[A-Za-z0-9][A-Za-z0-9-]{0,127}$/;

function readCreate(body: unknown): CreateSandbox {
  const given = fields(body);
  const unknown = Object.keys(given).find((name) => !CREATE_FIELDS.has(name));
  if (unknown !== undefined) throw new PlatformError('invalid_request', `${unknown}: is not a known field`);
  required(given, 'spec', 'object');
  for (const [name, type] of [
    ['id', 'string'],
    ['isolation', 'string'],
    ['start', 'boolean'],
    ['hostVolume', 'string'],
    ['hostFolder', 'string'],
    ['snapshot', 'string'],
    ['cgroupParent', 'string'],
    ['volumes', 'object'],
  ] as const) {
    optional(given, name, type);
  }
  readAuth(given['registryAuth']);
  readSecretValues(given['secretValues']);
  readScope(given, 'imageScope');
  readMaxHeldBytes(given);
  readNetworkCeiling(given);
  const { hostFolder } = given;
  if (typeof hostFolder === 'string' && !HOST_FOLDER.test(hostFolder))
    throw new PlatformError('invalid_request', 'hostFolder: must be letters, digits and hyphens');
  if (Object.values(given['volumes'] ?? {}).some((volume) => typeof volume !== 'string'))
    throw new PlatformError('invalid_request', 'volumes: must map names to volume ids');
  // `checkSpec` checks `spec`, `chooseRuntime` checks `isolation`; the rest was checked above.
  return given as unknown as CreateSandbox;
}

function readEvents(query: URLSearchParams): ReadEvents {
  const types = query.get('types')?.split(',');
  const text = query.get('after');
  const after = text === null ? undefined : Number(text);
  if (after !== undefined && (!Number.isSafeInteger(after) || after < 0))
    throw new PlatformError('invalid_request', 'after: must be the sequence of an earlier event');
  const unknown = types?.find((type) => !EVENT_TYPES.some((known) => known === type));
  if (unknown !== undefined)
    throw new PlatformError('invalid_request', `types: ${unknown} is not one of ${EVENT_TYPES.join(', ')}`);
  const read = { types: EVENT_TYPES.filter((type) => types?.includes(type) ?? true) };
  return after === undefined ? read : { ...read, after };
}

const LOG_SOURCES: readonly LogSource[] = ['stdout', 'stderr', 'output', 'system'];

function readLogs(query: URLSearchParams): ReadLogs {
  const sources = query.get('sources')?.split(',') ?? [];
  const unknown = sources.find((source) => !LOG_SOURCES.some((known) => known === source));
  if (unknown !== undefined) {
    throw new PlatformError('invalid_request', `sources: ${unknown} is not one of ${LOG_SOURCES.join(', ')}`);
  }
  const cursor = query.get('cursor');
  const tail = query.get('tail');
  return {
    follow: query.get('follow') === 'true',
    ...(sources.length > 0 ? { sources: LOG_SOURCES.filter((source) => sources.includes(source)) } : {}),
    ...(cursor === null ? {} : { cursor }),
    ...(tail === null ? {} : { tail: readTail(tail) }),
  };
}

function readTail(text: string): number {
  const tail = Number(text);
  if (text !== '' && Number.isSafeInteger(tail) && tail >= 0) return tail;
  throw new PlatformError('invalid_request', 'tail: must be a whole number', { details: { field: 'tail' } });
}

/** Use of the host's disk by owner, largest first. Stats one file for each of them. */
async function listSpaceUsers(
  { rootfs, volumes, snapshots, images }: Pick<Kit, 'rootfs' | 'volumes' | 'snapshots' | 'images'>,
  sandboxes: Sandboxes,
): Promise<readonly SpaceUser[]> {
  const users: SpaceUser[] = [];
  for (const { record } of sandboxes.list()) {
    users.push({ kind: 'sandbox', id: record.id ?? '', bytes: rootfs.storedBytes(record.handle) });
  }
  for (const { id } of await volumes.list())
    users.push({ kind: 'volume', id, bytes: await volumes.storedBytes(id) });
  for (const { id, storedBytes } of snapshots.list())
    users.push({ kind: 'snapshot', id, bytes: storedBytes });
  for (const { id, sizeBytes } of await images.list()) users.push({ kind: 'image', id, bytes: sizeBytes });
  return users.toSorted((a, b) => b.bytes - a.bytes);
}

function snapshotRoutes({ snapshots }: Pick<Kit, 'snapshots'>, sandboxes: Sandboxes): Routes {
  const id = (call: Call) => call.params['id'] ?? '';
  return {
    'GET /snapshots': async () => await Promise.resolve(snapshots.list()),
    'POST /snapshots': async (call) => {
      const given = fields(await call.json());
      const request = { id: readId(given), sandboxId: required(given, 'sandboxId', 'string') };
      // A caller that leaves cancels the snapshot: its files are removed.
      return await sandboxes.snapshot(request, call.signal);
    },
    'GET /snapshots/:id': async (call) => await Promise.resolve(snapshots.get(id(call))),
    'DELETE /snapshots/:id': async (call) => {
      await snapshots.remove(id(call));
      return {};
    },
  };
}
