import { Type } from '../schema/type.ts';
import { strictObject } from '../spec/strict.ts';
import { NO_FIELDS, nullable } from './fields.ts';
import { LIMIT_FIELDS } from './plan-fields.ts';
import type { RestOperation } from './rest-operation.ts';

/** Limits in force and how much of them is taken; pools count the current calendar month in UTC. */
const QuotaUsage = strictObject({
  hard_cap: Type.Boolean({ description: 'The plan has no price for more than it includes' }),
  pool_exhausted: Type.Boolean({
    description: 'Nothing starts until the next month, a larger pool or a priced plan',
  }),
  vcpu_hours_used: Type.Number(),
  memory_gib_hours_used: Type.Number(),
  total_sandboxes: Type.Integer(),
  concurrent_ephemeral_running: Type.Integer({ description: 'Running or starting' }),
  concurrent_persistent_running: Type.Integer({ description: 'Running or starting' }),
  snapshot_storage_bytes: Type.Integer(),
  image_storage_bytes: nullable(Type.Integer(), { description: 'Null while the engine cannot be asked' }),
  is_suspended: Type.Boolean({ description: 'Nothing can be created or started' }),
  ...LIMIT_FIELDS,
});

export const quotaOperations = {
  'quotas.get': {
    summary: 'The limits of the organization and how much of them is used',
    tag: 'quotas',
    method: 'GET',
    path: '/quotas',
    audience: 'both',
    role: 'member',
    params: NO_FIELDS,
    query: NO_FIELDS,
    headers: NO_FIELDS,
    body: null,
    output: QuotaUsage,
    status: 200,
    errors: ['org_not_found'],
  },
} as const satisfies Record<string, RestOperation>;
