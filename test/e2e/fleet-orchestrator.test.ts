import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { enginePorts } from '../../packages/server/src/orchestrator/engine-ports.ts';
import { fleetPorts } from '../../packages/server/src/orchestrator/fleet-ports.ts';
import { nodesSuite } from '../../packages/server/src/orchestrator/nodes.suite.ts';
import { orchestratorSuite } from '../../packages/server/src/orchestrator/orchestrator.suite.ts';
import type { OrchestratorPorts } from '../../packages/server/src/orchestrator/ports.ts';
import { BUSYBOX, TestEngine } from '../engine/start-engine.ts';

const NAMES = ['a', 'b', 'c'];
const SPEC = { image: { type: 'oci' as const, reference: BUSYBOX } };
const never = new AbortController().signal;

/** Three engines on this machine, each with a data folder, an address pool and cgroups of its own. */
const engines: TestEngine[] = [];
let ports: OrchestratorPorts;
before(async () => {
  for (const _ of NAMES) engines.push(await TestEngine.start({ args: ['--isolation', 'container'] }));
  const members = NAMES.flatMap((name, index) => {
    const engine = engines[index];
    return engine === undefined ? [] : [{ name, ports: enginePorts(engine.client) }];
  });
  const nodeOfSandbox = async () => await Promise.resolve(undefined);
  ports = fleetPorts(members, { nodeOfSandbox });
});
after(async () => {
  for (const engine of engines) await engine.destroy();
});

const open = async () => await Promise.resolve({ ...ports, spec: SPEC });
orchestratorSuite('over three engines', open);
nodesSuite('three engines', open);

test('a volume keeps the sandboxes that mount it on its node, where each reads what others wrote', async (t) => {
  const { orchestrator, volumeStore } = ports;
  const volume = randomUUID();
  const ids = [randomUUID(), randomUUID()];
  t.after(async () => {
    for (const id of ids) await orchestrator.remove(id, never);
    await volumeStore.removeVolume(volume);
  });
  await volumeStore.createVolume(volume, 16);
  await volumeStore.writeVolumeFile(volume, 'greeting', bytes('hello'));
  const mounts = [{ type: 'named' as const, name: 'data', guest: '/data' }];
  const request = { spec: { ...SPEC, mounts }, volumes: { data: volume }, start: true };
  const nodes = new Set<string | undefined>();
  for (const id of ids) {
    nodes.add((await orchestrator.create({ id, ...request }, () => undefined, never)).node);
    const channel = await orchestrator.openChannel(id, never);
    const { stdout } = await channel.run({ cmd: 'cat', args: ['/data/greeting'] });
    channel.close();
    assert.equal(Buffer.from(stdout).toString(), 'hello');
  }
  assert.equal(nodes.size, 1);
});

async function* bytes(text: string): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(Buffer.from(text));
}
