import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SandboxSpec } from '@svc/contract';
import { Fault } from '../testing/fault.ts';
import { pretend } from '../testing/pretended-host.ts';
import type { Kit } from './kit.ts';
import { newHandle } from './record.ts';
import { Sandboxes } from './sandboxes.ts';

const SPEC: SandboxSpec = { image: { type: 'oci', reference: 'x' } };
const NO_POOL = { warm: [], warmAdaptive: 0 };
const noFault = () => new Fault(Infinity, 'before');

async function create(sandboxes: Sandboxes, start: boolean): Promise<void> {
  await sandboxes.create({ id: 'one', spec: SPEC, start }, () => {}, AbortSignal.timeout(100_000));
}

for (const start of [true, false]) {
  test(`calls that wait behind the removal of a ${start ? 'running' : 'stopped'} sandbox do not create it again`, async (t) => {
    const host = await pretend(t);
    const sandboxes = new Sandboxes(host.kit(noFault()), NO_POOL);
    await create(sandboxes, start);
    const sandbox = sandboxes.get('one');
    const removal = sandboxes.remove('one');
    const gone = { code: 'sandbox_not_found', message: 'there is no sandbox one; it was removed' };
    await Promise.all([assert.rejects(sandbox.start(), gone), assert.rejects(sandbox.stop(), gone), removal]);
    assert.deepEqual(await host.leftovers(), []);
  });
}

test('a create that fails and cannot be undone can be seen, and removed once the cause is gone', async (t) => {
  const host = await pretend(t);
  let isBusy = true;
  const rootfs: Kit['rootfs'] = new Proxy(host.rootfs, {
    get: (target, name) => {
      if (name === 'mount') return () => Promise.reject(new Error('no'));
      if (name === 'removeDisk' && isBusy) return () => Promise.reject(new Error('busy'));
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
  const sandboxes = new Sandboxes({ ...host.kit(noFault()), rootfs }, NO_POOL);
  await assert.rejects(create(sandboxes, true));
  assert.equal(sandboxes.get('one').view().state, 'failed');
  await assert.rejects(create(sandboxes, true), { code: 'name_already_exists' });
  isBusy = false;
  await sandboxes.remove('one');
  assert.deepEqual(await host.leftovers(), []);
});

test('of two records with one id the newer is kept, whichever is read first', async (t) => {
  const host = await pretend(t);
  const kit = host.kit(noFault());
  const before = new Sandboxes(kit, NO_POOL);
  await create(before, false);
  const { record } = before.get('one');
  const older = new Date(Date.parse(record.createdAt) - 1000).toISOString();
  // Handles are read in no order: of sixteen some come before the newer one and some after it.
  for (let n = 0; n < 16; n++) {
    const ghost = { ...record, handle: newHandle(), createdAt: older, state: 'failed', run: null } as const;
    await kit.records.write(ghost, { durable: false });
  }
  const next = new Sandboxes(host.kit(noFault()), NO_POOL);
  await next.recover();
  assert.equal(next.get('one').record.handle, record.handle);
  assert.equal((await kit.records.readAll(() => {})).length, 1);
  await next.remove('one');
  assert.deepEqual(await host.leftovers(), []);
});
