import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PlatformError, type ErrorCode } from '@svc/contract';
import { recordLostChanges } from '../../store/file-changes.ts';
import { startWithVolume } from '../../testing/volume-files.ts';

test('no change of a file is without an event, also when the server is killed in between', async (t) => {
  const { server, volume, volumeStore, files, events } = await startWithVolume(t);
  const { database } = server;
  const [isDone, isHeard] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let announced = 0;
  t.mock.method(volumeStore, 'makeVolumeFolder', async () => {
    announced = (await database.selectFrom('file_changes').selectAll().execute()).length;
    isDone.resolve();
    // As if the server were gone.
    await isHeard.promise;
  });
  const making = server.rest('POST', `${files}/mkdir`, { body: { path: 'a' } });
  await isDone.promise;
  assert.equal(announced, 1);
  await recordLostChanges(database);
  assert.deepEqual(await events(), []);
  await database.updateTable('file_changes').set({ leased_until: '2026-01-01T00:00:00.000Z' }).execute();
  await Promise.all([recordLostChanges(database), recordLostChanges(database)]);
  const payload = { volume_id: volume.id, path: 'a', outcome: 'unknown' };
  assert.deepEqual(await events(), [['volume_folder_created', payload]]);
  assert.deepEqual(await database.selectFrom('file_changes').selectAll().execute(), []);
  isHeard.resolve();
  assert.equal((await making).status, 200);
});

test('a file change whose outcome is unknown is recorded as such, a refused one not at all', async (t) => {
  const { server, volume, volumeStore, files, events } = await startWithVolume(t);
  const make = () => server.rest('POST', `${files}/mkdir`, { body: { path: 'a' } });
  const fail = (code: ErrorCode, cause?: Error) => () =>
    Promise.reject(new PlatformError(code, 'no', { cause }));
  const engine = t.mock.method(volumeStore, 'makeVolumeFolder', fail('invalid_volume_path'));
  assert.equal((await make()).status, 400);
  const refused = Object.assign(new Error('connect ECONNREFUSED'), { syscall: 'connect' });
  engine.mock.mockImplementation(fail('orchestrator_unreachable', refused));
  assert.equal((await make()).status, 502);
  assert.deepEqual(await events(), []);
  engine.mock.mockImplementation(fail('orchestrator_unreachable'));
  assert.equal((await make()).status, 502);
  const payload = { volume_id: volume.id, path: 'a', outcome: 'unknown' };
  assert.deepEqual(await events(), [['volume_folder_created', payload]]);
  assert.deepEqual(await server.database.selectFrom('file_changes').selectAll().execute(), []);
});
