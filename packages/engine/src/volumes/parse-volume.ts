import type { Volume } from '@svc/contract/orchestrator';
import { Type } from 'typebox';
import { Value } from 'typebox/value';

const Record = Type.Object({
  id: Type.String(),
  capacityMib: Type.Integer({ minimum: 1 }),
  createdAt: Type.String(),
});

/** Parses the record of a volume. @throws when it is invalid */
export function parseVolume(text: string): Volume {
  return Value.Parse(Record, JSON.parse(text));
}
