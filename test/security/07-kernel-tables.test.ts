import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { after, before, suite, test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { GuestProbe } from '../engine/guest-probe.ts';
import { CLASSES, startSandbox, type TestSandbox } from '../engine/sandbox-fixture.ts';
import { TestEngine } from '../engine/start-engine.ts';
import { waitUntil } from '@svc/contract/testing';

const run = promisify(execFile);
const MEMORY_MIB = 256;

/**
 * Tables of which the kernel has one for everybody. In each test one sandbox takes all that it can get and holds it; the neighbour and
 * the host must not notice. What each table is bounded by: docs/internals/kernel-tables.md.
 */
let engine: TestEngine;
let probe: GuestProbe;
before(async () => {
  [engine, probe] = await Promise.all([TestEngine.start(), GuestProbe.compile('../security/tables-probe.c')]);
});
after(() => engine.destroy());

interface Taken {
  readonly count: number;
  readonly error: string;
}

/** Takes all of a table and holds it. A sandbox that pays for it from its memory may end of it: null. */
async function takeAll(sandbox: TestSandbox, table: string, more = ''): Promise<Taken | null> {
  const channel = await sandbox.connect();
  const file = `/tmp/taken-${table}`;
  await channel.exec({ cmd: '/bin/sh', args: ['-c', `exec /bin/probe ${table} ${more} > ${file}`] });
  const look = () => sandbox.sh(`cat ${file}`).then(({ stdout }) => stdout);
  let said: string | null = '';
  await waitUntil(async () => (said = await look().catch(() => null)) === null || said.endsWith('\n'), {
    what: `${table} are taken`,
    timeoutMs: 100_000,
  });
  return said === null ? null : (JSON.parse(said) as Taken);
}

/** A little of it, for one who comes afterwards. */
async function takeSome(sandbox: TestSandbox, table: string): Promise<Taken> {
  const { stdout } = await sandbox.run({ cmd: '/bin/probe', args: [table, 'briefly'] });
  return JSON.parse(stdout) as Taken;
}

const numberIn = (path: string): number => Number(readFileSync(path, 'latin1').trim().split(/\s+/)[0]);

/** Of every network namespace together, whichever we are in: files below `/proc` have it in the first one alone. */
async function neighbourTable(
  name: 'arp_cache' | 'ndisc_cache',
): Promise<{ entries: number; limit: number }> {
  const { stdout } = await run('ip', ['-json', '-statistics', 'ntable', 'show', 'name', name]);
  const tables = JSON.parse(stdout) as { entries?: number; thresh3?: number }[];
  const { entries, thresh3: limit } = tables.find((table) => table.entries !== undefined) ?? {};
  assert.ok(entries !== undefined && limit !== undefined, stdout);
  return { entries, limit };
}

const neighbourEntries = async (): Promise<number> =>
  (await neighbourTable('arp_cache')).entries + (await neighbourTable('ndisc_cache')).entries;

for (const isolation of CLASSES) {
  suite(`on class ${isolation}`, { concurrency: false }, () => {
    let neighbour: TestSandbox;
    const startProbed = async (t?: TestContext): Promise<TestSandbox> => {
      const sandbox = await startSandbox(engine, isolation, { resources: { memory_mib: MEMORY_MIB } });
      t?.after(() => sandbox.remove());
      await probe.putInto(sandbox);
      return sandbox;
    };
    before(async () => {
      neighbour = await startProbed();
    });
    after(() => neighbour.remove());

    test('terminals', async (t) => {
      const taken = await takeAll(await startProbed(t), 'ptys');
      const isBounded = taken !== null && taken.count > 50 && taken.count <= 256;
      if (isolation === 'container') assert.ok(isBounded, JSON.stringify(taken));
      assert.ok((await takeSome(neighbour, 'ptys')).count > 50);
      // The host's own, as a login or a terminal emulator takes one.
      assert.equal((await run('script', ['-qec', 'echo fine', '/dev/null'])).stdout.trim(), 'fine');
      assert.ok(numberIn('/proc/sys/kernel/pty/nr') < numberIn('/proc/sys/kernel/pty/max') / 2);
    });

    test('asynchronous input and output', async () => {
      const before = numberIn('/proc/sys/fs/aio-nr');
      assert.deepEqual(await takeSome(neighbour, 'aio'), { table: 'aio', count: 0, error: 'ENOSYS' });
      assert.equal(numberIn('/proc/sys/fs/aio-nr'), before);
    });

    test('open files', async (t) => {
      // In gVisor they are files of its own kernel, and a few processes' take long enough.
      const processes = isolation === 'gvisor' ? 8 : 64;
      const taken = await takeAll(await startProbed(t), 'files', String(processes));
      if (isolation === 'container') assert.equal(taken, null, 'they are paid for from its memory');
      assert.ok((await takeSome(neighbour, 'files')).count >= 100);
      assert.ok(numberIn('/proc/sys/fs/file-nr') < numberIn('/proc/sys/fs/file-max') / 10);
    });

    test('queues of System V', async (t) => {
      await takeAll(await startProbed(t), 'queues');
      assert.ok((await takeSome(neighbour, 'queues')).count >= 100);
    });

    for (const [table, enough] of [
      ['timers', 100],
      ['mqueues', 5],
    ] as const) {
      test(`POSIX ${table}`, async (t) => {
        const taken = await takeAll(await startProbed(t), table);
        const isBounded = taken === null || ['EAGAIN', 'EMFILE'].includes(taken.error);
        if (isolation === 'container') assert.ok(isBounded, JSON.stringify(taken));
        const left = [
          await takeSome(neighbour, table),
          JSON.parse(await probe.outputHere([table, 'briefly'])) as Taken,
        ];
        for (const { count, error } of left) assert.ok(count >= enough, `${count} ${table}, then ${error}`);
      });
    }

    test('data in sockets', async (t) => {
      const taken = await takeAll(await startProbed(t), 'sockets');
      assert.ok((taken?.count ?? 0) < MEMORY_MIB / 2, `${taken?.count} MiB in sockets`);
      assert.ok((await takeSome(neighbour, 'sockets')).count > 0);
    });

    test('neighbours on the network', async () => {
      const before = await neighbourEntries();
      await takeSome(neighbour, 'neighbours');
      const grown = (await neighbourEntries()) - before;
      assert.ok(grown < 64, `${grown} entries`);
      const { limit } = await neighbourTable('arp_cache');
      assert.ok(limit >= 32_768, 'two of each of thousands of sandboxes');
    });
  });
}

test('ids of processes are enough for every sandbox at its limit', () => {
  assert.ok(numberIn('/proc/sys/kernel/pid_max') >= 4_194_304);
  assert.ok(numberIn('/proc/sys/kernel/threads-max') >= 1_048_576);
});
