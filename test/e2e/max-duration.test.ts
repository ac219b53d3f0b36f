import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Client, Sandbox, SvcError } from '@svc/sdk';
import { BUSYBOX } from '../engine/start-engine.ts';
import { TestServer } from './start-server.ts';

const SCRIPT = "trap '' TERM; echo so far; echo and this >&2; seq 1 20000; sleep 600";
const OUTPUT = /^so far\n1\n[^]*\n20000\n$/;
/** Long enough for a command to be started in it on a machine that stands still for a while. */
const MAX_SECONDS = 8;
const KILLED = 137;

for (const isolation of ['container', 'gvisor'] as const) {
  describe(`a command that the end of its sandbox's time cuts off, ${isolation}`, () => {
    let server: TestServer;
    before(async () => {
      server = await TestServer.start({ engineArgs: ['--isolation', isolation] });
    });
    after(() => server.destroy());

    const create = async (name: string): Promise<Sandbox> =>
      await Sandbox.create({
        client: new Client({ apiUrl: server.url }),
        name,
        image: BUSYBOX,
        maxDurationSeconds: MAX_SECONDS,
      });

    test('keeps what it wrote for a caller of JSON-RPC, who is told why', async () => {
      await create('rpc');
      const command = { sandbox: 'rpc', command: 'sh', args: ['-c', SCRIPT] };
      const { result, error } = await server.call('sandbox.command.run', command);
      assert.equal(error, undefined, JSON.stringify(error));
      const told = result as { output: string; error: string; exit_code: number };
      assert.match(told.output, OUTPUT);
      assert.match(told.error, /^and this\n\[.*had run for as long as it may.*max_duration_secs/);
      assert.equal(told.exit_code, KILLED);
    });

    test('keeps what it wrote for the SDK, with the reason', async () => {
      const sandbox = await create('sdk');
      const { stdout, stderr, reason } = await sandbox.exec('sh', ['-c', SCRIPT]);
      assert.match(Buffer.from(stdout).toString(), OUTPUT);
      assert.deepEqual([Buffer.from(stderr).toString(), reason], ['and this\n', 'max_duration']);
    });

    if (isolation === 'gvisor') {
      test('is refused with a limit that would not be kept, by the SDK too', async () => {
        await using sandbox = await Sandbox.create({
          client: new Client({ apiUrl: server.url }),
          image: BUSYBOX,
        });
        const rlimits = [{ resource: 'cpu', soft: 1, hard: 1 }];
        await assert.rejects(sandbox.exec('true', [], { rlimits }), (error) => {
          assert.ok(SvcError.is(error));
          assert.match(error.message, /cpu is not kept by the isolation of this sandbox; leave it out/);
          return true;
        });
      });
    }
  });
}
