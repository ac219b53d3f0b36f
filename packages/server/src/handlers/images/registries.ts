import { PlatformError } from '@svc/contract';
import {
  listRegistries,
  putRegistry,
  registryContext,
  removeRegistry,
  type RegistryRecord,
} from '../../store/registries.ts';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';
import type { Database } from '../../store/database.ts';
import type { Sealer } from '../../secrets/sealer.ts';

export function registryHandlers(
  database: Database,
  sealer: Sealer,
): Pick<RestHandlers, Extract<keyof RestHandlers, `registries.${string}`>> {
  return {
    'registries.list': async (_input, { organization }) =>
      (await listRegistries(database, organization.id)).map(viewRegistry),
    'registries.put': async ({ body: { registry_host: host, username, password } }, call) => {
      const seal = (id: string) => sealer.seal(password, registryContext(id));
      const put = await call.commit(async ({ db, record }) => {
        const registry = await putRegistry(db, call.organization.id, { host, username, seal });
        const payload = { registry_id: registry.id, registry_host: registry.host };
        await record({ type: 'registry_updated', category: 'registry', payload });
        return registry;
      }, viewRegistry);
      return viewRegistry(put);
    },
    'registries.remove': async ({ params }, call) => {
      const answer = () => ({ message: 'The password for the registry is forgotten' });
      await call.commit(async ({ db, record }) => {
        const removed = await removeRegistry(db, call.organization.id, params.id.toLowerCase());
        if (removed === undefined) throw new PlatformError('not_found', 'There is no such registry');
        const payload = { registry_id: removed.id, registry_host: removed.host };
        await record({ type: 'registry_removed', category: 'registry', payload });
      }, answer);
      return answer();
    },
  };
}

function viewRegistry(registry: RegistryRecord) {
  return {
    id: registry.id,
    registry_host: registry.host,
    username: registry.username,
    created_at: registry.createdAt,
    updated_at: registry.updatedAt,
  };
}
