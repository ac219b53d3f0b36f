import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Client, Sandbox, SvcError } from '@svc/sdk';
import { BUSYBOX } from '../engine/start-engine.ts';
import { TestServer } from './start-server.ts';

const SCRIPT = "trap '' TERM; echo so far; echo and this >&2; seq 1 20000; sleep 600";
const OUTPUT = /^so far\n1\n[^]*\n20000\n$/;
/** Long enough for a command to be started in it on a machine that stands still for a while. All of them wait at the same time. */
const MAX_SECONDS = 12;
const KILLED = 137;

let server: TestServer;
before(async () => {
  server = await TestServer.start();
});
after(() => server.destroy());

async function create(name: string, isolation: 'container' | 'gvisor'): Promise<Sandbox> {
  return await Sandbox.create({
    client: new Client({ apiUrl: server.url }),
    name: `${name}-${isolation}`,
    image: BUSYBOX,
    isolation,
    maxDurationSeconds: MAX_SECONDS,
  });
}

describe("a command that the end of its sandbox's time cuts off", { concurrency: true }, () => {
  for (const isolation of ['container', 'gvisor'] as const) {
    test(`keeps what it wrote for a caller of JSON-RPC, with the reason, ${isolation}`, async () => {
      const { name } = await create('rpc', isolation);
      const command = { sandbox: name, command: 'sh', args: ['-c', SCRIPT] };
      const { result, error } = await server.call('sandbox.command.run', command);
      assert.equal(error, undefined, JSON.stringify(error));
      const answer = result as { output: string; error: string; exit_code: number };
      assert.match(answer.output, OUTPUT);
      assert.match(answer.error, /^and this\n\[.*had run for as long as it may.*max_duration_secs/);
      assert.equal(answer.exit_code, KILLED);
    });

    test(`keeps what it wrote for the SDK, with the reason, ${isolation}`, async () => {
      const sandbox = await create('sdk', isolation);
      const { stdout, stderr, reason } = await sandbox.exec('sh', ['-c', SCRIPT]);
      assert.match(Buffer.from(stdout).toString(), OUTPUT);
      assert.deepEqual([Buffer.from(stderr).toString(), reason], ['and this\n', 'max_duration']);
    });
  }
});

test('a command is refused with a limit that would not be kept, by the SDK too', async () => {
  await using sandbox = await Sandbox.create({
    client: new Client({ apiUrl: server.url }),
    image: BUSYBOX,
    isolation: 'gvisor',
  });
  const rlimits = [{ resource: 'cpu' as const, soft: 1, hard: 1 }];
  await assert.rejects(sandbox.exec('true', [], { rlimits }), (error) => {
    assert.ok(SvcError.is(error));
    assert.match(error.message, /cpu is not kept by the isolation of this sandbox; leave it out/);
    return true;
  });
});
