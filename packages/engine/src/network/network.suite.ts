import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PlatformError } from '@svc/contract/errors';
import { resolvePolicy } from '../policy/resolve-policy.ts';
import type { KeptSlot, Network, Slot } from './network.ts';

/** A host on which engines run one after the other. */
export interface NetworkSuiteHost extends AsyncDisposable {
  /** A network of a new engine; `recover` was not called. The host closes it in the end. */
  open(options?: { readonly capacity?: number }): Network;
  /** The names of all resources of this engine, except prepared slots. */
  leftovers(): Promise<readonly string[]>;
}

/** A slot to keep that has the default policy. */
export function keptAs(key: string, policy = resolvePolicy(undefined)): KeptSlot {
  return { key, policy };
}

const soon = () => AbortSignal.timeout(100_000);

/** The contract of the port, without its packet filtering. */
export function networkSuite(name: string, makeHost: () => Promise<NetworkSuiteHost>): void {
  test(`${name}: 50 slots acquired at once share neither key nor namespaces nor ids nor address`, async () => {
    await using host = await makeHost();
    const network = host.open();
    await network.recover([]);
    const slots = await Promise.all(Array.from({ length: 50 }, () => network.acquire('public', soon())));
    const linkOf = ({ link }: Slot) => (assert.ok(link), link);
    const facets = [
      slots.map(({ key }) => key),
      slots.flatMap(({ userNamespace, networkNamespace }) => [userNamespace, networkNamespace]),
      slots.map(({ idBase }) => Math.floor(idBase / 65_536)),
      slots.map((slot) => linkOf(slot).address),
      slots.map((slot) => linkOf(slot).hostInterface),
    ];
    for (const facet of facets as readonly unknown[][]) assert.equal(new Set(facet).size, facet.length);
    for (const { idBase } of slots) assert.equal(idBase % 65_536, 0);
    await Promise.all(slots.map(({ key }) => network.release(key)));
    assert.deepEqual(await host.leftovers(), []);
  });

  test(`${name}: a slot with reach loopback has no link and no traffic`, async () => {
    await using host = await makeHost();
    const network = host.open();
    await network.recover([]);
    const slot = await network.acquire('loopback', soon());
    assert.equal(slot.link, null);
    assert.deepEqual(network.traffic(slot), { receivedBytes: 0, sentBytes: 0 });
  });

  test(`${name}: release can be repeated and succeeds for a slot that never was`, async () => {
    await using host = await makeHost();
    const network = host.open();
    await network.recover([]);
    const { key } = await network.acquire('public', soon());
    await Promise.all([network.release(key), network.release(key)]);
    await network.release(key);
    await network.release('neverexisted');
    assert.deepEqual(await host.leftovers(), []);
  });

  test(`${name}: acquire refuses before recover, after close and with an aborted signal`, async () => {
    await using host = await makeHost();
    const network = host.open();
    await assert.rejects(network.acquire('public', soon()), (error) =>
      PlatformError.is(error, 'unavailable'),
    );
    await network.recover([]);
    const reason = new Error('changed my mind');
    await assert.rejects(network.acquire('public', AbortSignal.abort(reason)), reason);
    await network.close();
    await assert.rejects(network.acquire('public', soon()), (error) =>
      PlatformError.is(error, 'unavailable'),
    );
    assert.deepEqual(await host.leftovers(), []);
  });

  test(`${name}: after a restart the slots to keep are as they were and all others are gone`, async () => {
    await using host = await makeHost();
    const earlier = host.open();
    await earlier.recover([]);
    const kept = await earlier.acquire('public', soon());
    const alone = await earlier.acquire('loopback', soon());
    const lost = await earlier.acquire('public', soon());
    await earlier.close();

    const later = host.open();
    const keep = [kept.key, alone.key, 'neverexisted'].map((key) => keptAs(key));
    const byKey = (slots: readonly Slot[]) => [...slots].toSorted((a, b) => a.key.localeCompare(b.key));
    assert.deepEqual(byKey(await later.recover(keep)), byKey([kept, alone]));
    const before = await host.leftovers();
    assert.deepEqual(byKey(await later.recover(keep)), byKey([kept, alone]), 'a second time changes nothing');
    assert.deepEqual(await host.leftovers(), before);
    assert.ok(!before.some((leftover) => leftover.includes(lost.key)));

    const fresh = await Promise.all(Array.from({ length: 10 }, () => later.acquire('public', soon())));
    const addresses = [kept, ...fresh].map(({ link }) => link?.address);
    assert.equal(new Set(addresses).size, addresses.length);
    const ids = [kept, alone, ...fresh].map(({ idBase }) => idBase);
    assert.equal(new Set(ids).size, ids.length);
    await Promise.all([kept, alone, ...fresh].map(({ key }) => later.release(key)));
    assert.deepEqual(await host.leftovers(), []);
  });

  test(`${name}: when all addresses are in use acquire says so, and works again after a release`, async () => {
    await using host = await makeHost();
    const network = host.open({ capacity: 5 });
    await network.recover([]);
    const slots: Slot[] = [];
    await assert.rejects(
      async () => {
        while (slots.length <= 5) slots.push(await network.acquire('public', soon()));
      },
      (error) => PlatformError.is(error, 'insufficient_capacity'),
    );
    const [first] = slots;
    assert.ok(first);
    await network.release(first.key);
    assert.notEqual((await network.acquire('public', soon())).key, first.key);
  });
}
