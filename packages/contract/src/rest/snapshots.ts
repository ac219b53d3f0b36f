import type { Static } from 'typebox';
import { Type } from '../schema/type.ts';
import { Labels, strictObject } from '../spec/strict.ts';
import {
  MessageResponse,
  NO_FIELDS,
  nullable,
  optional,
  PAGE_QUERY,
  pageOf,
  Timestamp,
  Uuid,
} from './fields.ts';
import type { RestOperation } from './rest-operation.ts';
import { Sandbox, SnapshotLocation } from './sandbox-fields.ts';

export const SnapshotName = Type.String({
  pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$',
  description: '1–128 letters, digits, dots, hyphens or underscores; the first one a letter or digit',
});

const CreateSnapshotRequest = strictObject({
  kind: Type.Literal('disk'),
  sandbox_id: Uuid,
  name: SnapshotName,
  dest_dir: optional(Type.String({ maxLength: 4096 }), {
    description: 'Must be null: snapshots are kept in managed storage',
  }),
  force: optional(Type.Boolean(), { description: 'Replace a snapshot of this name' }),
  labels: optional(Labels),
  record_integrity: optional(Type.Boolean(), { description: 'The digest is always recorded' }),
});

export const SNAPSHOT_OPERATION_STATUSES = ['queued', 'in_progress', 'succeeded', 'failed'] as const;

export const Snapshot = strictObject({
  kind: Type.Literal('disk'),
  id: Uuid,
  name: Type.String(),
  location: SnapshotLocation,
  digest: Type.String({
    description:
      '`sha256:` and the hexadecimal SHA-256 of the SHA-256 digests of the disk’s blocks of 64 KiB, in their order',
  }),
  size_bytes: Type.Integer(),
  manifest: Type.Object({}, { additionalProperties: true, description: 'What the snapshot was made of' }),
  labels: Labels,
  sandbox_id: nullable(Uuid),
  created_at: Timestamp,
});
export type Snapshot = Static<typeof Snapshot>;

const OPERATION_FIELDS = {
  id: Uuid,
  kind: Type.Literal('disk'),
  status: Type.Enum([...SNAPSHOT_OPERATION_STATUSES]),
  created_at: Timestamp,
  updated_at: Timestamp,
  completed_at: nullable(Timestamp),
  error: nullable(strictObject({ code: Type.String(), message: Type.String() })),
  result: nullable(Snapshot),
};
export const SnapshotOperation = strictObject(OPERATION_FIELDS);
const SnapshotOperationListItem = strictObject({
  ...OPERATION_FIELDS,
  snapshot_name: Type.String(),
  destination_kind: Type.Literal('managed'),
  sandbox_name: Type.String(),
  sandbox_id: nullable(Uuid),
});

const BY_ID = strictObject({ snapshot_id: Uuid });
const BY_NAME = strictObject({ name: Type.String({ minLength: 1, maxLength: 512 }) });
const COMMON = {
  tag: 'snapshots',
  audience: 'both',
  role: 'member',
  headers: NO_FIELDS,
  status: 200,
} as const;
const NOT_FOUND = ['snapshot_not_found'] as const;

export const snapshotOperations = {
  'snapshots.candidates': {
    ...COMMON,
    summary:
      'List the stopped sandboxes that a snapshot can be made of; one can be made of any running sandbox too',
    method: 'GET',
    path: '/sandboxes/snapshot-candidates',
    params: NO_FIELDS,
    query: strictObject(PAGE_QUERY),
    body: null,
    output: pageOf(Sandbox),
    errors: ['invalid_cursor'],
  },
  'snapshots.listOperations': {
    ...COMMON,
    summary: 'List the making of snapshots, newest first',
    method: 'GET',
    path: '/snapshot-operations',
    params: NO_FIELDS,
    query: strictObject({
      ...PAGE_QUERY,
      exclude_redundant: Type.Optional(
        Type.Boolean({
          description: 'Leave out those that succeeded: their snapshots are listed themselves',
        }),
      ),
    }),
    body: null,
    output: pageOf(SnapshotOperationListItem),
    errors: ['invalid_cursor'],
  },
  'snapshots.getOperation': {
    ...COMMON,
    summary: 'Get the state of a snapshot that is being made',
    method: 'GET',
    path: '/snapshot-operations/{operation_id}',
    params: strictObject({ operation_id: Uuid }),
    query: NO_FIELDS,
    body: null,
    output: SnapshotOperation,
    errors: ['not_found'],
  },
  'snapshots.list': {
    ...COMMON,
    summary: 'List snapshots, newest first',
    method: 'GET',
    path: '/snapshots',
    params: NO_FIELDS,
    query: strictObject(PAGE_QUERY),
    body: null,
    output: pageOf(Snapshot),
    errors: ['invalid_cursor'],
  },
  'snapshots.create': {
    ...COMMON,
    summary: 'Begin to make a snapshot of the disk of a sandbox; one that runs goes on',
    method: 'POST',
    path: '/snapshots',
    params: NO_FIELDS,
    query: NO_FIELDS,
    body: CreateSnapshotRequest,
    output: SnapshotOperation,
    status: 202,
    errors: [
      'sandbox_not_found',
      'name_already_exists',
      'snapshot_ineligible',
      'quota_exceeded',
      'insufficient_storage',
      'orchestrator_unreachable',
    ],
  },
  'snapshots.getByName': {
    ...COMMON,
    summary: 'Get a snapshot by its name',
    method: 'GET',
    path: '/snapshots/by-name/{name}',
    params: BY_NAME,
    query: NO_FIELDS,
    body: null,
    output: Snapshot,
    errors: NOT_FOUND,
  },
  'snapshots.removeByName': {
    ...COMMON,
    summary: 'Remove the snapshot of this name; sandboxes made from it keep their disks',
    method: 'DELETE',
    path: '/snapshots/by-name/{name}',
    params: BY_NAME,
    query: NO_FIELDS,
    body: null,
    output: MessageResponse,
    errors: NOT_FOUND,
  },
  'snapshots.get': {
    ...COMMON,
    summary: 'Get a snapshot',
    method: 'GET',
    path: '/snapshots/{snapshot_id}',
    params: BY_ID,
    query: NO_FIELDS,
    body: null,
    output: Snapshot,
    errors: NOT_FOUND,
  },
  'snapshots.remove': {
    ...COMMON,
    summary: 'Remove a snapshot; sandboxes made from it keep their disks',
    method: 'DELETE',
    path: '/snapshots/{snapshot_id}',
    params: BY_ID,
    query: NO_FIELDS,
    body: null,
    output: MessageResponse,
    errors: NOT_FOUND,
  },
} as const satisfies Record<string, RestOperation>;
