import { Type } from '../schema/type.ts';
import { strictObject } from '../spec/strict.ts';
import type { Operation } from './operation.ts';

export const healthOperations = {
  'health.get': {
    summary: 'Whether the server can run sandboxes',
    access: 'anyone',
    input: strictObject({}),
    output: strictObject({ message: Type.String() }),
    errors: ['unavailable'],
  },
} as const satisfies Record<string, Operation>;
