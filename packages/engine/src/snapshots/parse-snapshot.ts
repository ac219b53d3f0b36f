import type { SnapshotView } from '@svc/contract/orchestrator';
import { Type } from 'typebox';
import { Value } from 'typebox/value';

const Record = Type.Object({
  id: Type.String(),
  sandboxId: Type.String(),
  image: Type.Object({ reference: Type.String(), id: Type.String() }),
  imageScope: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  diskSizeMib: Type.Integer({ minimum: 1 }),
  sizeBytes: Type.Integer({ minimum: 1 }),
  storedBytes: Type.Integer({ minimum: 0 }),
  digest: Type.String(),
  createdAt: Type.String(),
});

/** Parses the record of a snapshot. @throws when it is invalid */
export function parseSnapshot(text: string): SnapshotView {
  return Value.Parse(Record, JSON.parse(text));
}
