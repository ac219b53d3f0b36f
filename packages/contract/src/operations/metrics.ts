import { Type } from '../schema/type.ts';
import { strictObject } from '../spec/strict.ts';
import type { Operation } from './operation.ts';
import { Namespace, SandboxName } from './sandbox-reference.ts';

export const SandboxUsage = strictObject({
  namespace: Type.String(),
  name: Type.String(),
  running: Type.Boolean(),
  cpu_usage: Type.Union([Type.Number(), Type.Null()], {
    description: 'Percent of one core over the last second; null when not running',
  }),
  memory_usage: Type.Union([Type.Integer(), Type.Null()], { description: 'MiB; null when not running' }),
  disk_usage: Type.Union([Type.Integer(), Type.Null()], {
    description: 'Bytes of the writable layer; null when not running',
  }),
});

export const metricsOperations = {
  'sandbox.metrics.get': {
    summary: 'Usage of one sandbox, or of every sandbox in a namespace; namespace * means all',
    access: 'reach',
    input: strictObject({
      namespace: Namespace,
      sandbox: Type.Optional(Type.Union([SandboxName, Type.Null()])),
    }),
    output: strictObject({ sandboxes: Type.Array(SandboxUsage) }),
    errors: ['sandbox_not_found', 'orchestrator_unreachable'],
  },
} as const satisfies Record<string, Operation>;
