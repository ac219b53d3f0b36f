import { newHandle, type EngineRecord } from '../sandboxes/record.ts';

/** A plain record of a sandbox. */
export function engineRecord(given: Partial<EngineRecord> = {}): EngineRecord {
  return {
    handle: newHandle(),
    id: null,
    complete: (given.id ?? null) !== null,
    spec: { image: { type: 'oci', reference: 'x' } },
    isolation: 'container',
    runtime: 'runc',
    image: {
      reference: 'x',
      id: 'sha256:0',
      config: { env: [], user: null, workdir: null, entrypoint: [], cmd: [], labels: {}, stopSignal: null },
    },
    volumes: {},
    hostVolume: null,
    hostFolder: null,
    createdAt: '2026-01-01T00:00:00.000Z',
    patched: false,
    state: 'running',
    run: null,
    ...given,
  };
}
