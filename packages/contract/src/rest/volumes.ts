import type { Static } from 'typebox';
import { Type } from '../schema/type.ts';
import { Labels, strictObject } from '../spec/strict.ts';
import { MessageResponse, NO_FIELDS, nullable, optional, Timestamp, Uuid } from './fields.ts';
import { METRICS_QUERY, METRICS_RANGE, MetricSeries } from './metrics.ts';
import type { RestOperation } from './rest-operation.ts';

export const VolumeName = Type.String({
  pattern: '^(?=.{1,128}$)[a-z0-9]+(-[a-z0-9]+)*$',
  description: '1–128 lowercase letters, digits and single hyphens between them',
});

const CapacityGib = Type.Integer({ minimum: 1, maximum: 16_384, description: 'GiB that its files may take' });

export const Volume = strictObject({
  id: Uuid,
  name: nullable(Type.String(), { description: 'Null: the volume of kind `host`' }),
  kind: Type.Enum(['host', 'managed'], { description: 'Every organization has one volume of kind `host`' }),
  storage: Type.Enum(['block']),
  status: Type.Enum(['active', 'deleting']),
  capacity_bytes: nullable(Type.Integer(), { description: 'Null: no cap of its own' }),
  used_bytes: nullable(Type.Integer(), { description: 'Null while it is unknown' }),
  labels: Labels,
  created_at: Timestamp,
  updated_at: Timestamp,
});
export type Volume = Static<typeof Volume>;

const CreateVolumeRequest = strictObject({
  name: VolumeName,
  capacity_gib: optional(CapacityGib, { description: 'Null or absent: no cap of its own' }),
  labels: optional(Labels),
  storage: optional(Type.Enum(['block'])),
});

const UpdateVolumeRequest = strictObject({
  capacity_gib: optional(CapacityGib, { description: 'Absent: unchanged; null: no cap of its own' }),
  labels: Type.Optional(Labels),
});

/** Samples are what a volume held, and might hold, at that time. */
export const VolumeMetrics = strictObject({
  volume_id: Uuid,
  range: METRICS_RANGE,
  metrics: strictObject({ used_bytes: MetricSeries, capacity_bytes: MetricSeries }),
});
export type VolumeMetrics = Static<typeof VolumeMetrics>;

export const VOLUME_PARAMS = strictObject({ id: Uuid });

const COMMON = { tag: 'volumes', audience: 'both', role: 'member', headers: NO_FIELDS, status: 200 } as const;

export const volumeOperations = {
  'volumes.list': {
    ...COMMON,
    summary: 'List all volumes, the host volume included',
    method: 'GET',
    path: '/volumes',
    params: NO_FIELDS,
    query: NO_FIELDS,
    body: null,
    output: Type.Array(Volume),
    errors: [],
  },
  'volumes.create': {
    ...COMMON,
    summary: 'Create a volume',
    method: 'POST',
    path: '/volumes',
    params: NO_FIELDS,
    query: NO_FIELDS,
    body: CreateVolumeRequest,
    output: Volume,
    errors: ['name_already_exists', 'quota_exceeded', 'insufficient_storage', 'orchestrator_unreachable'],
  },
  'volumes.getDefault': {
    ...COMMON,
    summary: 'Get the host volume of the organization',
    method: 'GET',
    path: '/volumes/default',
    params: NO_FIELDS,
    query: NO_FIELDS,
    body: null,
    output: Volume,
    errors: [],
  },
  'volumes.get': {
    ...COMMON,
    summary: 'Get a volume',
    method: 'GET',
    path: '/volumes/{id}',
    params: VOLUME_PARAMS,
    query: NO_FIELDS,
    body: null,
    output: Volume,
    errors: ['volume_not_found'],
  },
  'volumes.update': {
    ...COMMON,
    summary: 'Change the capacity or the labels of a volume',
    method: 'PATCH',
    path: '/volumes/{id}',
    params: VOLUME_PARAMS,
    query: NO_FIELDS,
    body: UpdateVolumeRequest,
    output: Volume,
    errors: [
      'volume_not_found',
      'volume_in_use',
      'invalid_state_transition',
      'precondition_failed',
      'quota_exceeded',
      'orchestrator_unreachable',
    ],
  },
  'volumes.remove': {
    ...COMMON,
    summary: 'Delete a volume with all its files; what it takes is freed soon after',
    method: 'DELETE',
    path: '/volumes/{id}',
    params: VOLUME_PARAMS,
    query: NO_FIELDS,
    body: null,
    output: MessageResponse,
    errors: ['volume_not_found', 'volume_in_use', 'precondition_failed'],
  },
  'volumes.metrics': {
    ...COMMON,
    summary: 'How much a volume held over time',
    method: 'GET',
    path: '/volumes/{id}/metrics',
    params: VOLUME_PARAMS,
    query: METRICS_QUERY,
    body: null,
    output: VolumeMetrics,
    errors: ['volume_not_found'],
  },
} as const satisfies Record<string, RestOperation>;
