import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import pino from 'pino';
import { AdaptivePool, type Demand } from './adaptive-pool.ts';
import type { Sandbox } from './sandbox.ts';

const GIB = 2 ** 30;
const PYTHON: Demand = {
  imageId: 'sha256:python',
  reference: 'python',
  scope: null,
  isolation: 'gvisor',
  vcpus: 1,
  memoryMib: 512,
  diskMib: 4096,
};
const INTERPRETER = { key: 'interpreter', cmd: 'python3', args: [], stdinFd: 12 };
const NODE = { ...PYTHON, imageId: 'sha256:node', reference: 'node' };

test('as many wait as were created within a minute, at least one, at most the maximum', async (t) => {
  const { pool, waiting, pass } = world(t, { max: 3 });
  pool.expect(PYTHON);
  await pass(100);
  assert.deepEqual(waiting(), ['python']);
  pool.expect(PYTHON);
  await pass(600);
  assert.deepEqual(waiting(), ['python', 'python']);
  for (let count = 0; count < 9; count++) pool.expect(PYTHON);
  await pass(600);
  assert.deepEqual(waiting(), ['python', 'python', 'python']);
  await pass(61_000);
  assert.deepEqual(waiting(), ['python'], 'a minute later one is enough');
});

test('each configuration gets one sandbox before any gets two, latest first', async (t) => {
  const { pool, waiting, pass } = world(t, { max: 2 });
  pool.expect(PYTHON);
  pool.expect(PYTHON);
  await pass(100);
  assert.deepEqual(waiting(), ['python', 'python']);
  await pass(1000);
  pool.expect(NODE);
  await pass(2000);
  assert.deepEqual(waiting(), ['node', 'python']);
});

test('sandboxes without demand are removed', async (t) => {
  const { pool, waiting, pass } = world(t, { max: 3 });
  pool.expect(PYTHON);
  await pass(9 * 60_000);
  assert.deepEqual(waiting(), ['python']);
  await pass(2 * 60_000);
  assert.deepEqual(waiting(), []);
  assert.equal(pool.view().givenBack, 1);
});

test('each is handed out once', async (t) => {
  const { pool, pass } = world(t, { max: 2 });
  pool.expect(PYTHON);
  pool.expect(PYTHON);
  await pass(100);
  const taken = [1, 2, 3].map(() => pool.take(PYTHON, 'runsc'));
  assert.notEqual(taken[0], undefined);
  assert.notEqual(taken[0], taken[1]);
  assert.equal(taken[2], undefined);
  const { handedOut, missed } = pool.view();
  assert.deepEqual([handedOut, missed], [2, 1]);
});

test('another image, size, class, runtime or scope gets none', async (t) => {
  const { pool, pass } = world(t, { max: 1 });
  const secret: Demand = { ...PYTHON, scope: 'ours' };
  pool.expect(secret);
  await pass(100);
  for (const other of [
    { imageId: 'sha256:other' },
    { vcpus: 2 },
    { memoryMib: 1024 },
    { diskMib: 8192 },
    { isolation: 'container' },
    { scope: 'theirs' },
    { scope: null },
  ] as const)
    assert.equal(pool.take({ ...secret, ...other }, 'runsc'), undefined, JSON.stringify(other));
  assert.equal(pool.take(secret, 'other'), undefined);
  assert.ok(pool.take({ ...secret, reference: 'another-name-of-it' }, 'runsc'));
});

test('none is started while a create is waiting', async (t) => {
  const { pool, waiting, pass } = world(t, { max: 1 });
  const create = pool.duringCreate();
  pool.expect(PYTHON);
  await pass(5000);
  assert.deepEqual(waiting(), []);
  create[Symbol.dispose]();
  await pass(100);
  assert.deepEqual(waiting(), ['python']);
});

test('the refill after a create is delayed while others wait, and not when none does', async (t) => {
  const { pool, asked, pass } = world(t, { max: 2 });
  const create = (demand: Demand) => {
    using _ = pool.duringCreate();
    const taken = pool.take(demand, 'runsc');
    pool.expect(demand);
    return taken;
  };
  for (let count = 0; count < 2; count++) create(PYTHON);
  await pass(100);
  assert.equal(asked.length, 2);
  assert.ok(create(PYTHON));
  await pass(400);
  assert.equal(asked.length, 2, 'one still waits');
  assert.ok(create(PYTHON));
  await pass(90);
  assert.equal(asked.length, 4, 'none waits');
});

test('when memory or disk get short all are given back, and for a minute none is started', async (t) => {
  for (const shortage of [{ freeBytes: 1 * GIB }, { isDiskShort: true }]) {
    const { pool, host, waiting, pass } = world(t, { max: 3 });
    pool.expect(PYTHON);
    await pass(100);
    const calm = { ...host };
    Object.assign(host, shortage);
    await pass(1000);
    assert.deepEqual(waiting(), []);
    Object.assign(host, calm);
    await pass(50_000);
    assert.deepEqual(waiting(), []);
    await pass(11_000);
    assert.deepEqual(waiting(), ['python']);
    await pool.close();
  }
});

test('no more wait than a share of the free memory allows', async (t) => {
  const { pool, host, waiting, pass } = world(t, { max: 3 });
  host.freeBytes = 2.1 * GIB;
  for (let count = 0; count < 3; count++) pool.expect(PYTHON);
  await pass(100);
  assert.deepEqual(waiting(), ['python', 'python']);
});

test('a failed start is retried after a minute', async (t) => {
  const { pool, asked, host, waiting, pass } = world(t, { max: 1 });
  host.isBroken = true;
  pool.expect(PYTHON);
  await pass(50_000);
  assert.equal(asked.length, 1);
  host.isBroken = false;
  await pass(11_000);
  assert.deepEqual(waiting(), ['python']);
});

test('when an image is to go, none of it waits or is started, until it is asked for again', async (t) => {
  const { pool, waiting, pass } = world(t, { max: 3 });
  pool.expect(PYTHON);
  pool.expect(NODE);
  await pass(100);
  await pool.release(PYTHON.imageId);
  assert.deepEqual(waiting(), ['node']);
  assert.ok(!pool.uses(PYTHON.imageId));
  await pass(5000);
  assert.deepEqual(waiting(), ['node']);
  pool.expect(PYTHON);
  await pass(100);
  assert.deepEqual(waiting(), ['node', 'python']);
});

test('closed, it removes all that wait, one that is being started included', async (t) => {
  const { pool, waiting, asked, pass, gate } = world(t, { max: 2 });
  pool.expect(PYTHON);
  await pass(100);
  const opened = gate();
  pool.expect(NODE);
  await pass(100);
  assert.equal(asked.length, 2);
  const closed = pool.close();
  opened();
  await closed;
  assert.deepEqual(waiting(), []);
  pool.expect(PYTHON);
  await pass(5000);
  assert.equal(asked.length, 2);
});

test('processes of such sandboxes are started in waiting ones, and in new ones', async (t) => {
  const { pool, started, pass } = world(t, { max: 2 });
  pool.expect(PYTHON);
  pool.expect(NODE);
  await pass(100);
  pool.expectProcess(PYTHON, INTERPRETER);
  await pass(600);
  assert.deepEqual(started, ['python: python3']);
  assert.deepEqual(programs(pool), [
    ['node', []],
    ['python', ['python3']],
  ]);
  assert.ok(pool.take(PYTHON, 'runsc'));
  pool.expect(PYTHON);
  await pass(100);
  assert.deepEqual(started, ['python: python3', 'python: python3']);
  await pass(9 * 60_000);
  pool.expect(PYTHON);
  await pass(2 * 60_000);
  assert.ok(pool.take(PYTHON, 'runsc'));
  await pass(1000);
  assert.deepEqual(programs(pool), [['python', []]], 'not run for ten minutes');
});

test('a process that cannot be started in a waiting sandbox is not retried there, and the sandbox stays', async (t) => {
  const { pool, started, host, pass } = world(t, { max: 1 });
  host.isBroken = 'spares';
  pool.expect(PYTHON);
  pool.expectProcess(PYTHON, INTERPRETER);
  await pass(5000);
  assert.deepEqual(started, ['python: python3']);
  assert.deepEqual(programs(pool), [['python', []]]);
});

test('no process is started in sandboxes without demand, nor while a create is waiting', async (t) => {
  const { pool, started, pass } = world(t, { max: 1 });
  pool.expectProcess(PYTHON, INTERPRETER);
  pool.expect(PYTHON);
  await pass(100);
  assert.deepEqual(started, []);
  const create = pool.duringCreate();
  pool.expectProcess(PYTHON, INTERPRETER);
  await pass(5000);
  assert.deepEqual(started, []);
  create[Symbol.dispose]();
  await pass(600);
  assert.deepEqual(started, ['python: python3']);
});

test('switched off, it starts nothing and has nothing', async (t) => {
  const { pool, asked, pass } = world(t, { max: 0 });
  pool.expect(PYTHON);
  await pass(5000);
  assert.deepEqual([asked.length, pool.take(PYTHON, 'runsc')], [0, undefined]);
});

/** What waits, and the programs in it. */
function programs(pool: AdaptivePool) {
  const waiting = pool.view().waiting.map((one) => [one.reference, one.programs] as const);
  return waiting.toSorted(([one], [other]) => one.localeCompare(other));
}

/** A pool on a host with 16 GiB of memory, most of it free, where time passes when told to. */
function world(t: TestContext, { max }: { readonly max: number }) {
  t.mock.timers.reset();
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'] });
  const host = { freeBytes: 12 * GIB, isDiskShort: false, isBroken: false as boolean | 'spares' };
  const asked: string[] = [];
  const started: string[] = [];
  const living = new Set<Sandbox>();
  let open: Promise<void> = Promise.resolve();
  const pool = new AdaptivePool(pino({ level: 'silent' }), {
    max,
    host: {
      freeMemoryBytes: () => host.freeBytes,
      totalMemoryBytes: () => 16 * GIB,
      isDiskShort: () => host.isDiskShort,
    },
    make: async ({ reference }) => {
      asked.push(reference);
      await open;
      if (host.isBroken === true) throw new Error('it does not start');
      // As much of a sandbox as the pool looks at.
      const sandbox = {
        record: { runtime: 'runsc', createdAt: 'now', image: { reference } },
        run: {},
        startSpare: async ({ cmd }: { cmd: string }) => {
          started.push(`${reference}: ${cmd}`);
          if (host.isBroken === 'spares') throw new Error('there is no such program');
        },
        remove: async () => void living.delete(sandbox),
      } as unknown as Sandbox;
      living.add(sandbox);
      return sandbox;
    },
  });
  return {
    pool,
    host,
    asked,
    started,
    waiting: () => [...living].map(({ record }) => record.image.reference).toSorted(),
    gate: () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      open = promise;
      return resolve;
    },
    /** The pool is tended every second, as the engine does. */
    pass: async (ms: number) => {
      for (let left = ms; left > 0; left -= 1000) {
        t.mock.timers.tick(Math.min(left, 1000));
        await setImmediate();
        if (left >= 1000) pool.tend();
        await setImmediate();
        t.mock.timers.tick(0);
        await setImmediate();
      }
    },
  };
}
