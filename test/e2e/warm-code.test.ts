import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { ChannelClient } from '@svc/contract';
import type { Isolation } from '@svc/contract/orchestrator';
import { waitUntil } from '@svc/contract/testing';
import { socketTransport } from '@svc/contract/node-socket-transport';
import { Client, Sandbox, type CreateSandboxOptions } from '@svc/sdk';
import { importPython } from '../engine/interpreter-images.ts';
import { TestServer } from './start-server.ts';

let server: TestServer;
let client: Client;

before(async () => {
  server = await TestServer.start({ engineArgs: ['--warm-adaptive', '2'] });
  await importPython(server.engine);
  client = new Client({ apiUrl: server.url, maxRetries: 0 });
});
after(() => server.destroy());

const language = 'python';
const PID = 'import os; os.getpid()';

/** The next sandbox with the interpreter that waited in it, if any; pid as the sandbox counts. */
async function createNext(isolation: Isolation, options: Omit<CreateSandboxOptions, 'image'> = {}) {
  await waitUntil(
    async () =>
      (await server.engine.client.pool()).waiting.some(
        (one) => one.isolation === isolation && one.programs.includes('python3'),
      ),
    { timeoutMs: 60_000, what: 'an interpreter waits' },
  );
  const sandbox = await Sandbox.create({ client, image: 'python', isolation, ...options });
  const channel = await ChannelClient.connect(
    socketTransport(await server.engine.client.openChannel(sandbox.id)),
  );
  const spares = await channel.detached.list();
  channel.close();
  return { sandbox, pid: spares[0]?.pid ?? null };
}

for (const isolation of ['container', 'gvisor'] as const) {
  describe(`an image that code was run in, on ${isolation}`, { concurrency: false }, () => {
    before(async () => {
      const first = await Sandbox.create({ client, image: 'python', isolation });
      await first.runCode('1+1', { language });
      await first.remove();
      // Asked for once more, so that its place is not given to the other class.
      await (await Sandbox.create({ client, image: 'python', isolation })).remove();
    });

    test('the next sandbox has an interpreter already, and keeps its state there', async () => {
      const { sandbox, pid } = await createNext(isolation);
      assert.notEqual(pid, null);
      const { result, output } = await sandbox.runCode(PID, { language });
      assert.deepEqual([result, output], [String(pid), `${pid}\n`]);
      await sandbox.runCode('kept = 41', { language });
      assert.equal((await sandbox.runCode('kept + 1', { language })).result, '42');
      await sandbox.remove();
    });

    test('a sandbox with another environment gets a new interpreter with that environment', async () => {
      const code = 'import os; (os.environ.get("GREETING"), os.getcwd())';
      for (const [options, seen] of [
        [{ env: { GREETING: 'hi' } }, "('hi', '/')"],
        [{ workdir: '/usr' }, "(None, '/usr')"],
        [{ network: { policy: { default_egress: 'deny' } } }, "(None, '/')"],
      ] as const) {
        const { sandbox, pid } = await createNext(isolation, options);
        assert.equal(pid, null, `no interpreter of before: ${JSON.stringify(options)}`);
        assert.equal((await sandbox.runCode(code, { language })).result, seen);
        await sandbox.remove();
      }
    });

    test('an unused sandbox is idle, also with a waiting interpreter', async () => {
      const { sandbox, pid } = await createNext(isolation, { idleTimeoutSeconds: 2, isEphemeral: false });
      assert.notEqual(pid, null);
      await waitUntil(async () => (await sandbox.refresh()).status !== 'running', {
        timeoutMs: 60_000,
        what: 'it was stopped',
      });
      await sandbox.remove();
    });
  });
}
