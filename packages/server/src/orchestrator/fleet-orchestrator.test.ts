import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { PlatformError } from '@svc/contract';
import { waitUntil } from '@svc/contract/testing';
import { FakeOrchestrator } from '../testing/fake-orchestrator.ts';
import { fakeFleet } from '../testing/fake-fleet.ts';
import { nodesSuite } from './nodes.suite.ts';
import { orchestratorSuite } from './orchestrator.suite.ts';
import { volumeStoreSuite } from './volume-store.suite.ts';

const SPEC = { image: { type: 'oci' as const, reference: 'x' } };
const never = new AbortController().signal;
const ignore = () => undefined;
const isAway = (error: unknown) => PlatformError.is(error, 'orchestrator_unreachable');

const open = async () => await Promise.resolve({ ...fakeFleet(['a', 'b', 'c']).ports, spec: SPEC });
orchestratorSuite('of a fleet of three nodes in memory', open);
nodesSuite('a fleet of three nodes in memory', open);
const volumes = fakeFleet(['a', 'b', 'c']).ports.volumeStore;
volumeStoreSuite('of a fleet of three nodes in memory', () => volumes);

test('new sandboxes go to the node with the fewest, or to the node that is named', async () => {
  const { ports } = fakeFleet(['a', 'b', 'c']);
  await ports.imageStore.pullImage({ reference: 'x', scope: '' }, ignore, never);
  const made = new Set<string | undefined>();
  for (let count = 0; count < 3; count++)
    made.add((await ports.orchestrator.create({ id: randomUUID(), spec: SPEC }, ignore, never)).node);
  assert.deepEqual(made, new Set(['a', 'b', 'c']));
  const named = { id: randomUUID(), spec: SPEC, node: 'b' };
  assert.equal((await ports.orchestrator.create(named, ignore, never)).node, 'b');
  assert.equal((await ports.orchestrator.list(never)).filter(({ node }) => node === 'b').length, 2);
});

test('a node without the image takes a sandbox only when the one that has it is much fuller', async () => {
  const { ports, members } = fakeFleet(['a', 'b']);
  await members.get('b')?.pullImage({ reference: 'x', scope: 'acme' }, ignore);
  const place = async () =>
    await ports.orchestrator.place({ id: randomUUID(), spec: SPEC, imageScope: 'acme' }, never);
  assert.equal(await place(), 'b');
  for (let count = 0; count < 9; count++)
    await members.get('b')?.create({ id: randomUUID(), spec: SPEC }, ignore);
  assert.equal(await place(), 'a');
});

test('a sandbox goes to the node of its volume and its snapshot, and is refused when they are on two', async () => {
  const { ports } = fakeFleet(['a', 'b', 'c']);
  const { orchestrator, volumeStore, snapshotStore } = ports;
  const volumeId = randomUUID();
  await volumeStore.createVolume(volumeId, 16);
  const mounts = [{ type: 'named' as const, name: 'data', guest: '/data' }];
  const request = () => ({ id: randomUUID(), spec: { ...SPEC, mounts }, volumes: { data: volumeId } });
  const home = await orchestrator.place(request(), never);
  for (let count = 0; count < 3; count++)
    assert.equal((await orchestrator.create(request(), ignore, never)).node, home);
  const other = ['a', 'b', 'c'].find((name) => name !== home) ?? '';
  const sandboxId = randomUUID();
  await orchestrator.create({ id: sandboxId, spec: SPEC, node: other }, ignore, never);
  const snapshot = randomUUID();
  await snapshotStore.createSnapshot({ id: snapshot, sandboxId }, never);
  assert.equal(await orchestrator.place({ id: randomUUID(), spec: SPEC, snapshot }, never), other);
  await assert.rejects(
    orchestrator.place({ ...request(), snapshot }, never),
    (error) =>
      PlatformError.is(error, 'invalid_sandbox_config') &&
      error.message.includes(`volume data is on ${home}, the snapshot is on ${other}`),
  );
});

test('a node that is away takes its own sandboxes with it, and no others', async () => {
  const { ports, members } = fakeFleet(['a', 'b']);
  const { orchestrator, nodes } = ports;
  const [there, away] = [randomUUID(), randomUUID()];
  await orchestrator.create({ id: there, spec: SPEC, node: 'a' }, ignore, never);
  await orchestrator.create({ id: away, spec: SPEC, node: 'b' }, ignore, never);
  const heard: string[] = [];
  const over = new AbortController();
  const listening = (async () => {
    for await (const change of orchestrator.changes(over.signal))
      if (change !== null && 'node' in change) heard.push(`${change.node} ${change.problem === null}`);
  })();
  await waitUntil(() => heard.length === 2);
  members.get('b')?.goAway();
  await waitUntil(() => heard.at(-1) === 'b false');
  assert.deepEqual(
    (await orchestrator.list(never)).map(({ id }) => id),
    [there],
  );
  await assert.rejects(orchestrator.get(away, never), isAway);
  await assert.rejects(orchestrator.get(randomUUID(), never), isAway, 'b may have it');
  assert.equal((await orchestrator.start(there, never)).state, 'running');
  assert.equal(await orchestrator.place({ id: randomUUID(), spec: SPEC }, never), 'a');
  const [, b] = await nodes.listNodes(never);
  assert.match(b?.problem ?? '', /^node b is away: /);
  members.get('b')?.comeBack();
  await waitUntil(() => heard.at(-1) === 'b true');
  assert.equal((await orchestrator.get(away, never))?.node, 'b');
  over.abort();
  await listening;
});

test('a fleet whose nodes are all away is away', async () => {
  const { ports, members } = fakeFleet(['a', 'b']);
  const watching = Array.fromAsync(ports.orchestrator.changes(never));
  for (const member of members.values()) member.goAway();
  await assert.rejects(watching, isAway);
  await assert.rejects(ports.orchestrator.list(never), isAway);
  await assert.rejects(ports.nodes.describe(never), isAway);
});

test('a sandbox that another server made elsewhere is found there by its row', async () => {
  const rows = new Map<string, string | null>();
  const { ports, members } = fakeFleet(['a', 'b'], async (id) => await Promise.resolve(rows.get(id)));
  const id = randomUUID();
  rows.set(id, 'a');
  assert.equal(await ports.orchestrator.get(id, never), undefined);
  rows.set(id, 'b');
  await members.get('b')?.create({ id, spec: SPEC }, ignore);
  assert.equal((await ports.orchestrator.get(id, never))?.node, 'b');
});

test('denials of every node are heard, also of one that comes back', async () => {
  const a = new FakeOrchestrator();
  const b = new FakeOrchestrator();
  const { ports } = fakeFleet(['a', 'b'], undefined, [a, b]);
  const over = new AbortController();
  const heard: string[] = [];
  const listening = (async () => {
    for await (const { sandboxId } of ports.orchestrator.denials(over.signal)) heard.push(sandboxId);
  })();
  await waitUntil(() => a.denied.listeners === 1 && b.denied.listeners === 1);
  for (const [node, sandboxId] of [
    [a, 'one'],
    [b, 'two'],
    [a, 'three'],
  ] as const)
    node.denied.report({ sandboxId, type: 'policy_denied', details: {} });
  await waitUntil(() => heard.length === 3);
  over.abort();
  await listening;
  assert.deepEqual(heard.toSorted(), ['one', 'three', 'two']);
});
