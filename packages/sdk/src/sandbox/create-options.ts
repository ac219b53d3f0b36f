import type { CreateSandboxRequest } from '@svc/contract/rest';
import type { OptionNames } from '../client/known-options.ts';
import { randomId } from '../client/random-id.ts';
import { SvcError } from '../svc-error.ts';
import { secretEntry, type SecretOption } from './secret-entry.ts';

/** The options of a new sandbox. Fields of the REST API that have no option here go into `spec`. */
export interface CreateOptions {
  /** A random one unless given; a sandbox without a name is ephemeral unless told otherwise. */
  readonly name?: string;
  /** Unique on the server; made from the name unless given. */
  readonly slug?: string;
  /** Reference of an OCI image. Needed unless it is made from a snapshot. */
  readonly image?: string;
  /** Id of a snapshot whose disk it begins with. */
  readonly snapshotId?: string;
  /** Limits, not reservations: 1 and 512 MiB unless given. */
  readonly vcpus?: number;
  readonly memoryMib?: number;
  readonly diskMib?: number;
  readonly env?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly workdir?: string;
  readonly user?: string;
  readonly shell?: string;
  /** It is removed when it stops. */
  readonly isEphemeral?: boolean;
  /** It stops after this long without activity. */
  readonly idleTimeoutSeconds?: number;
  readonly maxDurationSeconds?: number;
  readonly isolation?: NonNullable<CreateSandboxRequest['isolation']>;
  readonly mounts?: NonNullable<CreateSandboxRequest['mounts']>;
  readonly network?: NonNullable<CreateSandboxRequest['network']>;
  /** Keyed by the variable that holds the placeholder inside. */
  readonly secrets?: Readonly<Record<string, SecretOption>>;
  /** Anything else of the body of `POST /v1/sandboxes`; wins over the fields above. */
  readonly spec?: Partial<CreateSandboxRequest>;
}

export const CREATE_OPTIONS: OptionNames<CreateOptions> = {
  name: true,
  slug: true,
  image: true,
  snapshotId: true,
  vcpus: true,
  memoryMib: true,
  diskMib: true,
  env: true,
  labels: true,
  workdir: true,
  user: true,
  shell: true,
  isEphemeral: true,
  idleTimeoutSeconds: true,
  maxDurationSeconds: true,
  isolation: true,
  mounts: true,
  network: true,
  secrets: true,
  spec: true,
};

export function toCreateRequest(options: CreateOptions): CreateSandboxRequest {
  const { name = randomName(), isEphemeral = options.name === undefined } = options;
  return withoutUndefined({
    name,
    slug: options.slug,
    ...sourceOf(options),
    resources: withoutUndefined({
      vcpus: options.vcpus,
      memory_mib: options.memoryMib,
      disk_size_mib: options.diskMib,
    }),
    runtime: withoutUndefined({ workdir: options.workdir, user: options.user, shell: options.shell }),
    env: Object.entries(options.env ?? {}).map(([key, value]) => ({ key, value })),
    labels: { ...options.labels },
    lifecycle: withoutUndefined({
      ephemeral: isEphemeral,
      idle_timeout_secs: options.idleTimeoutSeconds,
      max_duration_secs: options.maxDurationSeconds,
    }),
    isolation: options.isolation,
    mounts: options.mounts,
    network: networkOf(options),
    ...options.spec,
  });
}

function networkOf({ network, secrets }: CreateOptions): CreateSandboxRequest['network'] {
  if (secrets === undefined) return network;
  const entries = Object.entries(secrets).map(([name, secret]) => secretEntry(name, secret));
  const { secrets: given = null } = network ?? {};
  const whole = Array.isArray(given) ? { entries: given } : given;
  return { ...network, secrets: { ...whole, entries: [...(whole?.entries ?? []), ...entries] } };
}

const NO_SOURCE = "A sandbox is made from an image or a snapshot: Sandbox.create({ image: 'python' })";

/** @throws SvcError `invalid_request` without a source */
function sourceOf({ image, snapshotId, spec }: CreateOptions): Partial<CreateSandboxRequest> {
  if (snapshotId !== undefined) {
    return { source: 'disk_snapshot', disk_snapshot_ref: { type: 'managed', id: snapshotId } };
  }
  if (image !== undefined) return { image: { type: 'oci', reference: image } };
  if (spec?.image === undefined && spec?.source === undefined)
    throw new SvcError('invalid_request', NO_SOURCE, { details: { field: 'image' } });
  return {};
}

/** Drops undefined keys: to the server null has a meaning of its own. */
function withoutUndefined<T extends object>(fields: {
  readonly [Key in keyof T]: T[Key] | undefined;
}): T {
  // The remaining keys have values of their types.
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;
}

function randomName(): string {
  return `sandbox-${randomId().slice(0, 8)}`;
}
