import { Type } from 'typebox';
import { Value } from 'typebox/value';
import type { Volume } from './volumes.ts';

const Record = Type.Object({
  id: Type.String(),
  capacityMib: Type.Integer({ minimum: 1 }),
  createdAt: Type.String(),
});

/** Reads the record of a volume. @throws when it is none */
export function parseVolume(text: string): Volume {
  return Value.Parse(Record, JSON.parse(text));
}
