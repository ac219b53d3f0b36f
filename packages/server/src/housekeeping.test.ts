import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { verifyEvents } from './store/verify-events.ts';
import { appendEvent, listEventsAfter } from './store/events.ts';
import { openStore } from './store/open-store.ts';
import { ensureOrganization } from './store/organizations.ts';
import { sqliteDialect } from './store/sqlite.ts';
import { makeFolder, nextMillisecond, startTestServer } from './testing/test-server.ts';

test('a server removes events that are older than it is told to keep, and the chain stays whole', async (t) => {
  const folder = await makeFolder(t);
  const before = await openStore(sqliteDialect(join(folder, 'store.db')));
  const organizationId = await ensureOrganization(before, 'acme');
  const actor = { kind: 'system', code: 'test', label: 'Test' } as const;
  const kind = { type: 'image_pulled', category: 'image' } as const;
  const event = { organizationId, ...kind, actor, payload: {} };
  for (const _ of [1, 2, 3]) await appendEvent(before, { ...event, requestId: null, sourceAddress: null });
  await before.destroy();
  await nextMillisecond();
  await nextMillisecond();

  const { database } = await startTestServer(t, { folder, restSettings: { keepEventsMs: 1 } });
  const types = async () =>
    (await listEventsAfter(database, organizationId, 0, 10)).map(({ event_type: type }) => type);
  await waitUntil(async () => (await types()).join() === 'events_pruned', 'old events are gone');
  assert.equal((await verifyEvents(database, organizationId)).broken, null);
});
