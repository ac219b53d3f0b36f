import type { Static } from 'typebox';
import { Type } from '../schema/type.ts';
import { Mount, Patch } from '../spec/mounts.ts';
import { NetworkRequest } from '../spec/network.ts';
import { EnvVar, Init, Lifecycle, Resources, Rlimit, Runtime } from '../spec/sandbox-spec.ts';
import { Labels, strictObject } from '../spec/strict.ts';
import { nullable, optional, Timestamp, Uuid } from './fields.ts';
import { RequestedSpecView, SandboxSpecView } from './spec-view.ts';

export const SANDBOX_STATUSES = [
  'created',
  'starting',
  'running',
  'temporarily_unavailable',
  'recovery_decision_required',
  'stopping',
  'stopped',
  'failed',
] as const;
export type SandboxStatus = (typeof SANDBOX_STATUSES)[number];

export const SANDBOX_NAME_PATTERN = '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$';
export const SLUG_PATTERN = '^(?=.{3,63}$)[a-z0-9]+(-[a-z0-9]+)*$';
export const ISOLATION_CLASSES = ['auto', 'microvm', 'gvisor', 'container'] as const;

export const SandboxName = Type.String({
  pattern: SANDBOX_NAME_PATTERN,
  description: '1–128 letters, digits, dots, hyphens or underscores; the first one a letter or digit',
});
export const SandboxSlug = Type.String({
  pattern: SLUG_PATTERN,
  description: '3–63 lowercase letters, digits and single hyphens; unique on this server',
});

const Text = Type.String({ minLength: 1, maxLength: 4096, pattern: '^[^\\u0000]+$' });
const ImageFormat = Type.Enum(['qcow2', 'raw', 'vmdk']);

/** Where the root file system comes from, in the shape of API 0.6. */
const Image = Type.Union(
  [
    strictObject({ type: Type.Literal('oci'), reference: Type.String({ minLength: 1, maxLength: 512 }) }),
    strictObject({ type: Type.Literal('bind'), path: Text }),
    strictObject({
      type: Type.Literal('disk_image'),
      path: Text,
      format: ImageFormat,
      fstype: optional(Text),
    }),
  ],
  { description: 'What it runs; this, or `source` with what goes with it' },
);

/** A managed snapshot, or a file in the organization's host volume. */
export const SnapshotLocation = Type.Union([
  strictObject({ type: Type.Literal('managed'), id: Uuid }),
  strictObject({ type: Type.Literal('host_volume'), path: Text }),
]);

/** The same as callers name it. */
const SnapshotReference = Type.Union([
  strictObject({
    type: Type.Literal('managed'),
    id: Type.String({ pattern: SANDBOX_NAME_PATTERN, description: 'Its id, or its name' }),
  }),
  strictObject({ type: Type.Literal('host_volume'), path: Text }),
]);

export const RegistryChoice = Type.Union([
  strictObject({ mode: Type.Enum(['auto', 'anonymous']) }),
  strictObject({ mode: Type.Literal('specific'), credential_id: Uuid }),
  strictObject({
    mode: Type.Literal('inline'),
    username: Type.String({ maxLength: 1024 }),
    password: Type.String({ maxLength: 16_384 }),
  }),
]);

/**
 * The body of a create, in either of its documented shapes: `image`, or `source` with the fields that go with it. Which
 * fields go together is checked by `checkCreateSandbox`, which can say it in words.
 */
export const CreateSandboxRequest = strictObject({
  name: SandboxName,
  slug: optional(SandboxSlug),
  image: Type.Optional(Image),
  source: Type.Optional(
    Type.Enum(['oci', 'bind', 'disk_image', 'disk_snapshot'], { description: 'Instead of `image`' }),
  ),
  reference: Type.Optional(
    Type.String({ minLength: 1, maxLength: 512, description: 'With source `oci`: the image' }),
  ),
  path: Type.Optional(Text),
  format: Type.Optional(ImageFormat),
  fstype: optional(Text),
  disk_snapshot_ref: Type.Optional(SnapshotReference),
  isolation: Type.Optional(
    Type.Enum([...ISOLATION_CLASSES], {
      description:
        '`auto`, when it is not given, is the strongest that the host has; what it lacks is refused',
    }),
  ),
  resources: Type.Optional(Type.Partial(Resources, { additionalProperties: false })),
  runtime: Type.Optional(Runtime),
  env: Type.Optional(Type.Array(EnvVar, { maxItems: 4096 })),
  labels: Type.Optional(Labels),
  rlimits: Type.Optional(Type.Array(Rlimit, { maxItems: 16 })),
  mounts: Type.Optional(Type.Array(Mount, { maxItems: 64 })),
  patches: Type.Optional(Type.Array(Patch, { maxItems: 256 })),
  network: Type.Optional(NetworkRequest),
  init: optional(Init),
  pull_policy: Type.Optional(
    Type.Enum(['if_missing', 'always', 'never'], { description: 'When to ask the registry for the image' }),
  ),
  security_profile: Type.Optional(
    Type.Enum(['default', 'restricted'], {
      description: 'With `restricted` no process gains privileges by running a program',
    }),
  ),
  lifecycle: Type.Optional(Type.Partial(Lifecycle, { additionalProperties: false })),
  registry: optional(RegistryChoice),
});
export type CreateSandboxRequest = Static<typeof CreateSandboxRequest>;

export const Sandbox = strictObject({
  id: Uuid,
  org_id: Uuid,
  name: Type.String(),
  slug: Type.String(),
  status: Type.Enum([...SANDBOX_STATUSES]),
  status_reason: nullable(Type.Enum(['scheduling', 'insufficient_capacity']), {
    description: 'While status is starting',
  }),
  ephemeral: Type.Boolean(),
  node: nullable(Type.String(), {
    description: 'The host that it is placed on; null before that, and where there is only one host',
  }),
  isolation: nullable(Type.String(), {
    description: 'The class that was asked for, or else that it got; null until it was first made',
  }),
  spec: Type.Optional(SandboxSpecView),
  requested: Type.Optional(RequestedSpecView),
  created_at: Timestamp,
  started_at: nullable(Timestamp, { description: 'Start of the latest run' }),
  stopped_at: nullable(Timestamp, { description: 'End of the latest run; null while it lasts' }),
  last_failure_message: nullable(Type.String()),
  temporarily_unavailable_since: nullable(Timestamp),
  automatic_recovery_ends_at: nullable(Timestamp, {
    description: 'When an explicit recovery choice becomes necessary',
  }),
  ends_at: nullable(Timestamp, {
    description: 'When it has run for its max_duration_secs; null: never, or it does not run',
  }),
});
export type Sandbox = Static<typeof Sandbox>;

export const SandboxVolumeMount = strictObject({
  volume_id: Uuid,
  name: nullable(Type.String(), { description: "Null: the organization's host volume" }),
  mount_path: Type.String(),
  read_only: Type.Boolean(),
});
