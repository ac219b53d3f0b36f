import type { MastraSandboxOptions, SandboxCloneOptions } from '@mastra/core/workspace';
import { SvcError, type Client, type CreateOptions } from '@svc/sdk';

const DEFAULT_IMAGE = 'python';

/** By which sandboxes of Mastra are told from others. */
const LABELS = { 'made-by': 'mastra' } as const;

type OfMastra = Omit<MastraSandboxOptions, 'processes'>;
/** Those that Mastra has a word of its own for are left out. */
type OfSvc = Omit<CreateOptions, 'name' | 'slug' | 'env' | 'workdir' | 'isEphemeral'>;

/** The options of Mastra's sandboxes, and those of `Sandbox.create`. */
export interface SvcSandboxOptions extends OfMastra, OfSvc {
  /** A random one unless given. The sandbox of this id is found again, or else made. */
  readonly id?: string;
  /** The one of `SVC_API_URL` and `SVC_API_KEY` unless given. */
  readonly client?: Client;
  /** A sandbox of svc that exists, by its id or name, in place of one of its own. */
  readonly sandboxId?: string;
  /** The snapshot that `snapshot` makes, and that a new sandbox begins with where it is there. */
  readonly checkpointName?: string;
  /** The snapshot that a new sandbox begins with while the one above is not there. */
  readonly seedCheckpointName?: string;
}

/** What a new sandbox is made of. It is kept when it stops. */
export function toCreateOptions(
  options: SvcSandboxOptions,
  name: string,
  snapshotId?: string,
): CreateOptions {
  const {
    id: _id,
    client: _client,
    sandboxId: _sandboxId,
    checkpointName: _checkpoint,
    seedCheckpointName: _seed,
    onStart: _onStart,
    onStop: _onStop,
    onDestroy: _onDestroy,
    env: _env,
    workingDirectory: _folder,
    image = DEFAULT_IMAGE,
    ...own
  } = options;
  const begun = snapshotId ?? own.snapshotId;
  return {
    ...own,
    ...(begun === undefined ? { image } : { snapshotId: begun }),
    name,
    isEphemeral: false,
    labels: { ...own.labels, ...LABELS },
  };
}

/** Of a clone: what it does not name is as it is here, but for what belongs to one sandbox alone. */
export function cloned(options: SvcSandboxOptions, changes: SandboxCloneOptions): SvcSandboxOptions {
  const { id: _id, sandboxId: _sandboxId, checkpointName: _checkpoint, ...kept } = options;
  const { id, sandboxId, checkpointName, seedCheckpointName, env, workingDirectory } = changes;
  const { idleTimeoutMinutes, actingUserId } = changes;
  return {
    ...kept,
    ...(id === undefined ? {} : { id }),
    ...(sandboxId === undefined ? {} : { sandboxId }),
    ...(checkpointName === undefined ? {} : { checkpointName }),
    ...(seedCheckpointName === undefined ? {} : { seedCheckpointName }),
    ...(env === undefined ? {} : { env: { ...kept.env, ...env } }),
    ...(workingDirectory === undefined ? {} : { workingDirectory }),
    ...(idleTimeoutMinutes === undefined ? {} : { idleTimeoutSeconds: Math.ceil(idleTimeoutMinutes * 60) }),
    ...(actingUserId === undefined ? {} : { labels: { ...kept.labels, 'acting-user': actingUserId } }),
  };
}

/** @throws SvcError `invalid_request` for an id that cannot be part of a name */
export function nameOf(id: string): string {
  if (/^[A-Za-z0-9._-]{1,120}$/.test(id)) return `mastra-${id}`;
  const message = 'id becomes the name of a sandbox: 1 to 120 letters, digits, dots, hyphens or underscores';
  throw new SvcError('invalid_request', message, { details: { field: 'id' } });
}
