import type { SandboxView } from '../client/engine-api.ts';
import type { SandboxRecord } from './record.ts';

/** What callers see of a record: no handle, no token, no host path. */
export function toView(record: SandboxRecord): SandboxView {
  const { run } = record;
  return {
    id: record.id ?? '',
    state: record.state,
    isolation: record.isolation,
    runtime: record.runtime,
    image: { reference: record.image.reference, id: record.image.id },
    spec: record.spec,
    createdAt: record.createdAt,
    startedAt: run?.startedAt ?? null,
    endedAt: run?.endedAt ?? null,
    end: run?.end ?? null,
    address: run?.slot?.link?.address ?? null,
    timings: run?.timings ?? null,
  };
}
