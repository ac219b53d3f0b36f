import type { TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { ensureOrganization } from '../store/organizations.ts';
import { addVolume } from '../store/volumes.ts';
import { startTestServer, type TestServer, type TestServerOptions } from './test-server.ts';

export const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';

/** A server in development mode whose engine has answered. */
export async function startHealthy(t: TestContext, options: TestServerOptions = {}): Promise<TestServer> {
  const server = await startTestServer(t, options);
  await waitUntil(() => server.health.current.isHealthy);
  return server;
}

/** The body of a create. */
export function body(name: string, more: Readonly<Record<string, unknown>> = {}): object {
  const { reference = 'x', ...rest } = more;
  return { name, image: { type: 'oci', reference }, ...rest };
}

/** Waits until the sandbox of this name has this status. */
export async function until(server: TestServer, name: string, status: string) {
  let seen = await server.rest('GET', `/sandboxes/by-name/${name}`);
  await waitUntil(
    async () => {
      seen = await server.rest('GET', `/sandboxes/by-name/${name}`);
      return seen.body.status === status;
    },
    `${name} becoming ${status}, which is ${JSON.stringify(seen.body)},`,
  );
  return seen.body;
}

/** Types of the events about one sandbox, oldest first. */
export async function eventsOf({ database }: TestServer, sandboxId: string): Promise<readonly string[]> {
  const rows = await database.selectFrom('events').selectAll().orderBy('sequence').execute();
  return rows
    .filter(({ payload }) => (JSON.parse(payload) as { sandbox_id?: string }).sandbox_id === sandboxId)
    .map((row) => row.event_type);
}

/** Records a volume of organization `default`. @returns its id */
export async function recordVolume({ database }: TestServer, name: string): Promise<string> {
  const organizationId = await ensureOrganization(database, 'default');
  return (await addVolume(database, { organizationId, name, capacityGib: 1, labels: {} })).id;
}
