import type { Kit } from '../sandboxes/kit.ts';
import type { Sandboxes } from '../sandboxes/sandboxes.ts';
import { fields, readId, required } from './fields.ts';
import type { Call, Routes } from './http-server.ts';

export function snapshotRoutes({ snapshots }: Pick<Kit, 'snapshots'>, sandboxes: Sandboxes): Routes {
  const id = (call: Call) => call.params['id'] ?? '';
  return {
    'GET /snapshots': async () => await Promise.resolve(snapshots.list()),
    'POST /snapshots': async (call) => {
      const given = fields(await call.json());
      const request = { id: readId(given), sandboxId: required(given, 'sandboxId', 'string') };
      // A caller that goes away gives up: nothing of the snapshot stays.
      return await sandboxes.snapshot(request, call.signal);
    },
    'GET /snapshots/:id': async (call) => await Promise.resolve(snapshots.get(id(call))),
    'DELETE /snapshots/:id': async (call) => {
      await snapshots.remove(id(call));
      return {};
    },
  };
}
