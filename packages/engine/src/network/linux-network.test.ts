import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { PlatformError } from '@svc/contract/errors';
import type { Slot } from './network.ts';
import { keptAs, networkSuite } from './network.suite.ts';
import { command } from '../testing/command.ts';
import { TestEngine } from '../testing/test-engine.ts';

const soon = () => AbortSignal.timeout(100_000);

networkSuite('linux', async () => {
  const engine = await TestEngine.make(92);
  const prefix = engine.options.addressPool.replace('.0/24', '');
  return {
    open: ({ capacity } = {}) => {
      // Of a /29, two addresses beyond the capacity are prepared for others.
      assert.ok(capacity === undefined || capacity === 5);
      return capacity === undefined
        ? engine.open({ prepared: { loopback: 0, public: 0 } })
        : engine.open({ addressPool: `${prefix}.0/29`, prepared: { loopback: 0, public: 0 } });
    },
    leftovers: async () => (await engine.traces()).toSorted(),
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  };
});

test('close removes prepared slots, the table, the gateway address and the resolver', async () => {
  await using engine = await TestEngine.make(92);
  const network = engine.open();
  await network.recover([]);
  const slot = await network.acquire('public', soon());
  const { pid } = JSON.parse(await readFile(join(engine.options.runFolder, 'resolver.json'), 'utf8')) as {
    pid: number;
  };
  await network.release(slot.key);
  await network.close();
  assert.deepEqual(await engine.traces(), []);
  assert.equal(await engine.table(), '');
  assert.ok(!(await command('ip', 'address', 'show', 'dev', 'lo')).includes(slot.link?.gateway ?? ''));
  assert.ok(!(await isRunning(pid)));
});

test('every address of the pool can be asked for, also those that are prepared for others', async () => {
  await using engine = await TestEngine.make(92);
  const prefix = engine.options.addressPool.replace('.0/24', '');
  const network = engine.open({ addressPool: `${prefix}.0/29`, prepared: { loopback: 2, public: 2 } });
  await network.recover([]);
  for (let last = 2; last <= 6; last++) {
    const requested = {
      address: `${prefix}.${last}`,
      range: null,
      ipv6Address: null,
      ipv6Range: null,
      mac: null,
      mtu: null,
    };
    const slot = await network.acquire('public', soon(), requested);
    assert.equal(slot.link?.address, requested.address);
    await assert.rejects(network.acquire('public', soon(), requested), /is in use; choose another one/);
    await network.release(slot.key);
  }
});

test('the resolver has no privileges, and another takes its place when it dies', async () => {
  await using engine = await TestEngine.make(92);
  const network = engine.open();
  await network.recover([]);
  const record = join(engine.options.runFolder, 'resolver.json');
  const pidNow = async () => {
    // Absent or half written for a moment.
    const text = await readFile(record, 'utf8').catch(() => '');
    return text.endsWith('}') ? (JSON.parse(text) as { pid?: number }).pid : undefined;
  };
  const pid = await pidNow();
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const id = engine.options.firstHostId - 1;
  assert.match(status, new RegExp(`^Uid:\t${id}\t${id}\t${id}\t${id}$`, 'm'));
  assert.match(status, new RegExp(`^Gid:\t${id}\t${id}\t${id}\t${id}$`, 'm'));
  assert.match(status, /^Groups:\t *$/m);
  for (const set of ['CapPrm', 'CapEff', 'CapAmb', 'CapInh'])
    assert.match(status, new RegExp(`^${set}:\t0+$`, 'm'));
  assert.match(status, /^NoNewPrivs:\t1$/m);
  assert.match(status, /^Seccomp:\t2$/m);
  assert.ok(pid);
  const before = /dnat ip to [\d.]+:(\d+)/.exec(await engine.table())?.[1];
  process.kill(pid, 'SIGKILL');
  await waitUntil(async () => ![pid, undefined].includes(await pidNow()));
  const after = /dnat ip to [\d.]+:(\d+)/.exec(await engine.table())?.[1];
  assert.ok(before !== undefined && after !== undefined && after !== before, 'questions go to the new one');
});

test('slots and the resolver of a killed engine are taken over or removed', async () => {
  await using engine = await TestEngine.make(92);
  const { kept, resolverPid } = await runAndKillEngine(engine);
  assert.ok((await engine.traces()).length > 12, 'the killed engine left something');

  const network = engine.open();
  assert.ok(await isRunning(resolverPid), 'names are resolved while there is no engine');
  assert.deepEqual(await network.recover([keptAs(kept.key)]), [kept]);
  await waitUntil(async () => !(await isRunning(resolverPid)));
  await network.close();
  const traces = await engine.traces();
  assert.ok(kept.link);
  assert.deepEqual(
    traces.filter((trace) => !trace.includes(kept.key)),
    [kept.link.hostInterface, `"${kept.link.hostInterface}" . ${kept.link.address}`],
  );
  const again = engine.open();
  await again.recover([]);
  await again.close();
  assert.deepEqual(await engine.traces(), []);
});

test('a slot whose namespaces are gone is not kept', async () => {
  await using engine = await TestEngine.make(92);
  const earlier = engine.open();
  await earlier.recover([]);
  const slot = await earlier.acquire('public', soon());
  await earlier.close();
  // As after a reboot of a host whose run folder is on disk.
  await command('umount', slot.networkNamespace);
  const later = engine.open();
  assert.deepEqual(await later.recover([keptAs(slot.key)]), []);
  await later.close();
  assert.deepEqual(await engine.traces(), []);
});

test('a slot that cannot be made leaves nothing, and the next one can', async () => {
  await using engine = await TestEngine.make(92);
  let failures = 2;
  const hostCalls = Object.create(engine.hostCalls, {
    createNamespaces: {
      value: async (request: Parameters<typeof engine.hostCalls.createNamespaces>[0]) => {
        if (request.link !== null && failures-- > 0) throw new Error('no such luck');
        await engine.hostCalls.createNamespaces(request);
      },
    },
    removeNamespaces: { value: (user: string, net: string) => engine.hostCalls.removeNamespaces(user, net) },
    deleteLink: { value: (name: string) => engine.hostCalls.deleteLink(name) },
  }) as typeof engine.hostCalls;
  const network = engine.open({ hostCalls, prepared: { loopback: 0, public: 0 } });
  await network.recover([]);
  await assert.rejects(network.acquire('public', soon()), /no such luck/);
  await assert.rejects(network.acquire('public', soon()), /no such luck/);
  assert.deepEqual(await engine.traces(), []);
  assert.ok((await network.acquire('public', soon())).link);
});

test('a pool that overlaps with a route of the host is refused by name', async () => {
  await using one = await TestEngine.make(92);
  await using other = await TestEngine.make(92);
  const network = one.open();
  await network.recover([]);
  await network.acquire('public', soon());
  await assert.rejects(other.open().recover([]), (error) => {
    assert.ok(PlatformError.is(error, 'unavailable'));
    assert.match(error.message, /100\.92\.\d+\.0\/24 overlaps with .* choose another pool/);
    return true;
  });
  await network.close();
  const last = one.open();
  await last.recover([]);
  await last.close();
});

test('an unreadable record of an interrupted start is cleaned up', async () => {
  await using engine = await TestEngine.make(92);
  const first = engine.open();
  await first.recover([]);
  const slot = await first.acquire('public', soon());
  await first.close();
  await writeFile(join(engine.options.runFolder, 'slots', slot.key, 'slot.json'), '{"index":');
  const second = engine.open();
  assert.deepEqual(await second.recover([keptAs(slot.key)]), []);
  await second.close();
  assert.deepEqual(await engine.traces(), []);
});

/** False for an ended process, also for a zombie. */
async function isRunning(pid: number): Promise<boolean> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => 'State:\tX');
  return !/^State:\t[ZX]/m.test(status);
}

/** An engine of its own process that acquires two slots and is killed. */
async function runAndKillEngine(engine: TestEngine): Promise<{ kept: Slot; resolverPid: number }> {
  const url = (path: string) => JSON.stringify(new URL(path, import.meta.url).href);
  const program = `
    import { LinuxNetwork } from ${url('linux-network.ts')};
    import { SvcHostCalls } from ${url('../host/svc-host-calls.ts')};
    const logger = { info() {}, warn() {} };
    const network = new LinuxNetwork({ ...${JSON.stringify(engine.options)}, hostCalls: new SvcHostCalls(), logger });
    await network.recover([]);
    const slots = [];
    for (let n = 0; n < 2; n += 1) slots.push(await network.acquire('public', AbortSignal.timeout(60_000)));
    process.stdout.write(JSON.stringify(slots[0]) + '\\n');
  `;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  // Two slots are in use, and as many as are prepared wait: nothing more is on its way.
  await waitUntil(async () => (await engine.traces()).length === 4 * 5 + 3);
  child.kill('SIGKILL');
  await exited;
  const { pid } = JSON.parse(await readFile(join(engine.options.runFolder, 'resolver.json'), 'utf8')) as {
    pid: number;
  };
  return { kept: JSON.parse(line.toString()) as Slot, resolverPid: pid };
}
