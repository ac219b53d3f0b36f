import assert from 'node:assert/strict';
import { test } from 'node:test';
import { body, startHealthy } from '../../testing/sandboxes.ts';

test('a change with an outdated ETag is 412 and changes nothing', async (t) => {
  const server = await startHealthy(t);
  const { body: made } = await server.rest('POST', '/sandboxes', { body: body('one') });
  const patch = (name: string, version: string) =>
    server.rest('PATCH', `/sandboxes/${made.id}`, { body: { name }, headers: { 'if-match': version } });
  assert.equal((await patch('two', '"1"')).status, 200);
  const late = await patch('three', '"1"');
  assert.deepEqual([late.status, late.body.error.code], [412, 'precondition_failed']);
  assert.equal((await server.rest('GET', `/sandboxes/${made.id}`)).body.name, 'two');
  const remove = (version: string) =>
    server.rest('DELETE', `/sandboxes/${made.id}`, { headers: { 'if-match': version } });
  assert.equal((await remove('"1"')).status, 412);
  const act = (verb: string, version: string, sent: object = {}) =>
    server.rest('POST', `/sandboxes/${made.id}/${verb}`, { body: sent, headers: { 'if-match': version } });
  assert.equal((await act('start', '"1"')).status, 412);
  const started = await act('start?wait_for=running', '"2"');
  assert.equal(started.body.status, 'running');
  assert.equal((await act('stop', '"2"')).status, 412);
  assert.equal((await act('recover', '"2"', { action: 'stop' })).status, 412);
  assert.equal((await act('stop', '*')).status, 200);
  assert.equal((await remove('*')).status, 200);
});
