import assert from 'node:assert/strict';
import { test } from 'node:test';
import { installationUser, serverUser } from './installation-user.ts';

test('each data folder has its own user, the same at every start, below the ids of sandboxes', () => {
  const ids = Array.from({ length: 100 }, (_, number) => installationUser(`/var/lib/svc-${number}`).uid);
  assert.equal(new Set(ids).size, ids.length);
  for (const id of ids) assert.ok(id >= 0x0f00_0000 && id < 0x0ff0_0000, String(id));
  assert.deepEqual(installationUser('/var/lib/svc-0/'), installationUser('/var/lib/svc-0'));
});

test('a server beside another, on its engine, is of the same user', () => {
  const place = { dataFolder: '/srv/second', engineSocket: '/srv/first/engine.sock', isEngineExternal: true };
  assert.deepEqual(serverUser(place), installationUser('/srv/first'));
  assert.deepEqual(serverUser({ ...place, isEngineExternal: false }), installationUser('/srv/second'));
});
