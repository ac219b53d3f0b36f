import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Sandbox, type Client } from '@svc/sdk';
import { BUSYBOX } from '../engine/start-engine.ts';
import { clientOf } from '../sdk/real-server.ts';
import { TestServer } from './start-server.ts';

const MIB = 1024 * 1024;
const SANDBOXES = 10;
const CALLS = 100;
const SLOW_READS = 400;

let server: TestServer;
let client: Client;

before(async () => {
  server = await TestServer.start({ args: [], engineArgs: ['--isolation', 'container'] });
  client = await clientOf(server);
});
after(() => server.destroy());

test('a hundred calls at once in each of ten sandboxes, and each gets its own output', async (t) => {
  const sandboxes = await Promise.all(
    Array.from({ length: SANDBOXES }, (_, index) =>
      Sandbox.create({ client, name: `load-${index}`, image: BUSYBOX }),
    ),
  );
  t.after(() => Promise.all(sandboxes.map((sandbox) => sandbox.remove())));
  const call = async (sandbox: Sandbox, index: number) => {
    const script = `read word; echo "$word from ${sandbox.name}" ; exit ${index}`;
    const { code, stdout } = await sandbox.shell(script, { stdin: `call-${index}\n` });
    return { code, text: Buffer.from(stdout).toString() };
  };
  const results = await Promise.all(
    sandboxes.map((sandbox) =>
      Promise.all(Array.from({ length: CALLS }, (_, index) => call(sandbox, index))),
    ),
  );
  for (const [place, sandbox] of sandboxes.entries()) {
    const expected = Array.from({ length: CALLS }, (_, index) => ({
      code: index,
      text: `call-${index} from ${sandbox.name}\n`,
    }));
    assert.deepEqual(results[place], expected);
  }
});

test('a slow reader of ten gigabytes blocks the process, and no process of svc buffers them', async () => {
  await using sandbox = await Sandbox.create({ client, image: BUSYBOX });
  await using command = await sandbox.commands.start('head', ['-c', String(10 * 1024 * MIB), '/dev/zero']);
  const pids = [await server.webPid(), server.engine.pid, process.pid];
  let before: readonly number[] = [];
  let most: readonly number[] = [];
  let received = 0;
  let reads = 0;
  for await (const chunk of command.stdout) {
    received += chunk.length;
    reads += 1;
    // What any connection takes for its buffers is there by now.
    if (reads === 50) before = most = await residentBytes(pids);
    if (reads > 50 && reads % 50 === 0) most = larger(most, await residentBytes(pids));
    if (reads === SLOW_READS) break;
    await delay(5);
  }
  const growth = most.map((bytes, index) => (bytes - (before[index] ?? 0)) / MIB);
  assert.equal(reads, SLOW_READS);
  assert.ok(received < 1024 * MIB, `${received} bytes`);
  assert.ok(
    growth.every((mib) => mib < 64),
    `server, engine and client grew by ${growth.map(Math.round).join(', ')} MiB`,
  );
  assert.equal((await sandbox.exec('echo', ['still here'])).text(), 'still here\n');
});

async function residentBytes(pids: readonly number[]): Promise<readonly number[]> {
  return await Promise.all(
    pids.map(async (pid) => {
      const status = await readFile(`/proc/${pid}/status`, 'utf8');
      return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
    }),
  );
}

function larger(one: readonly number[], other: readonly number[]): readonly number[] {
  return one.map((bytes, index) => Math.max(bytes, other[index] ?? 0));
}
