import type { Database } from '../store/database.ts';
import type { Actor } from '../store/events.ts';
import { ensureUser } from '../store/users.ts';
import { actorOf } from './authorize-rest.ts';
import type { Caller } from './caller.ts';
import { DEVELOPER_EMAIL } from './principal.ts';

/** Names the actor for audit events of calls on the self-hosted surface (JSON-RPC, MCP, channel). */
export function createActorOfCaller(database: Database): (caller: Caller) => Promise<Actor> {
  let developer: Promise<Actor> | undefined;
  return async ({ kind, namespace, apiKey }) => {
    if (kind === 'developer')
      return await (developer ??= ensureUser(database, DEVELOPER_EMAIL).then(actorOf));
    if (apiKey !== undefined) return { kind: 'api_key', api_key_id: apiKey.id, name: apiKey.name };
    return { kind: 'api_key', api_key_id: 'server-key', name: `server key for ${namespace}` };
  };
}
