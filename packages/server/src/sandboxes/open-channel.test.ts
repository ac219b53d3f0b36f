import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { PlatformError } from '@svc/contract';
import { startTestServer } from '../testing/test-server.ts';
import { createOpenChannel } from './open-channel.ts';

test('of an ephemeral sandbox that went with its run it is known that it ran out of memory', async (t) => {
  const server = await startTestServer(t);
  const { orchestrator, database } = server;
  const openChannel = createOpenChannel(orchestrator, database);
  const gone = async (name: string, reason: string): Promise<unknown> => {
    const lifecycle = { ephemeral: true };
    const image = { type: 'oci', reference: 'python' };
    const body = { name, image, lifecycle, resources: { memory_mib: 96 } };
    const made = await server.rest('POST', '/sandboxes?start=true&wait_for=running', { body });
    const { id } = made.body as { id: string };
    orchestrator.end(id, reason, 'it ended');
    const signal = AbortSignal.timeout(60_000);
    await waitUntil(async () => (await orchestrator.get(id)) === undefined, 'it is removed');
    return await openChannel(id, signal).catch((error: unknown) => error);
  };
  const greedy = await gone('greedy', 'oom');
  assert.ok(PlatformError.is(greedy, 'sandbox_not_running'), String(greedy));
  assert.equal(greedy.details?.['reason'], 'oom');
  assert.match(greedy.message, /out of memory: more than 96 MiB were needed; raise resources\.memory_mib$/);
  assert.ok(PlatformError.is(await gone('done', 'exited'), 'sandbox_not_found'));
});
