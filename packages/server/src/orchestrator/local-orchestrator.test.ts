import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { PlatformError } from '@svc/contract';
import { EngineClient } from '@svc/engine/client';
import { LocalOrchestrator } from './local-orchestrator.ts';

/** An engine that removes the sandbox between two questions: the first is told that it is stopping, later ones that it is not there. */
async function forgetfulEngine(t: TestContext): Promise<EngineClient> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-forgetful-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const stopping = { code: 'sandbox_not_running', message: 'it is stopping', details: { state: 'stopping' } };
  const gone = { code: 'sandbox_not_found', message: 'there is no such sandbox' };
  let asked = 0;
  const answer = () => {
    asked += 1;
    return asked === 1 ? { status: 409, error: stopping } : { status: 404, error: gone };
  };
  const server = createServer((_request, response) => {
    const { status, error } = answer();
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ error }));
  });
  server.on('upgrade', (_request, socket) => {
    const { status, error } = answer();
    const body = JSON.stringify({ error });
    socket.end(
      `HTTP/1.1 ${status} No\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
  });
  server.listen(join(folder, 'engine.sock'));
  await once(server, 'listening');
  t.after(() => server.close());
  const client = new EngineClient({ socketPath: join(folder, 'engine.sock') });
  t.after(() => client.close());
  return client;
}

test('a sandbox that is removed while somebody wants into it is not there, and not just stopping', async (t) => {
  const orchestrator = new LocalOrchestrator(await forgetfulEngine(t));
  await assert.rejects(orchestrator.openStream('box', AbortSignal.timeout(60_000)), (error) =>
    PlatformError.is(error, 'sandbox_not_found'),
  );
});
