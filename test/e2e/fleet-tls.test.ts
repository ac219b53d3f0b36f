import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { pino } from 'pino';
import { PlatformError } from '@svc/contract';
import { TestAuthority, waitUntil } from '@svc/contract/testing';
import { TlsCredentials } from '@svc/engine/client';
import type { ConnectedOrchestrator } from '../../packages/server/src/orchestrator/connect-engine.ts';
import { connectNodes } from '../../packages/server/src/orchestrator/connect-nodes.ts';
import { nodesSuite } from '../../packages/server/src/orchestrator/nodes.suite.ts';
import { orchestratorSuite } from '../../packages/server/src/orchestrator/orchestrator.suite.ts';
import { volumeStoreSuite } from '../../packages/server/src/orchestrator/volume-store.suite.ts';
import { freePort } from '../../packages/server/src/testing/free-port.ts';
import { BUSYBOX, TestEngine } from '../engine/start-engine.ts';

const NAMES = ['a', 'b', 'c'] as const;
const SPEC = { image: { type: 'oci' as const, reference: BUSYBOX } };
const SLOW = { timeoutMs: 60_000 };
const never = new AbortController().signal;
const ignore = () => undefined;
const isAway = (error: unknown) => PlatformError.is(error, 'orchestrator_unreachable');

let authority: TestAuthority;
let fleet: ConnectedOrchestrator;
/** Three engines, each with a data folder, an address pool and a certificate of its own. */
const engines: TestEngine[] = [];
before(async () => {
  authority = await TestAuthority.create();
  const server = new TlsCredentials(await authority.server());
  const nodes = [];
  for (const name of NAMES) {
    const port = await freePort();
    const { ca, cert, key } = await authority.engine();
    const tls = ['--listen', `127.0.0.1:${port}`, '--tls-cert', cert, '--tls-key', key, '--tls-ca', ca];
    engines.push(await TestEngine.start({ args: ['--isolation', 'container', ...tls] }));
    nodes.push({ name, address: { host: '127.0.0.1', port, credentials: server } });
  }
  const nodeOfSandbox = async () => await Promise.resolve(undefined);
  fleet = connectNodes(nodes, { nodeOfSandbox }, pino({ level: 'silent' }));
});
after(async () => {
  fleet.close();
  for (const engine of engines) await engine.destroy();
  await authority[Symbol.asyncDispose]();
});

const open = async () => await Promise.resolve({ ...fleet.ports, spec: SPEC });
orchestratorSuite('over three engines behind TLS', open);
nodesSuite('three engines behind TLS', open);
volumeStoreSuite('of three engines behind TLS', () => fleet.ports.volumeStore);

test('an engine that hangs makes its own sandboxes unreachable and no others, until it answers again', async (t) => {
  const { orchestrator } = fleet.ports;
  const [there, away] = [randomUUID(), randomUUID()];
  const { pid } = engines[1] ?? assert.fail();
  t.after(async () => {
    process.kill(pid, 'SIGCONT');
    for (const id of [there, away])
      await waitUntil(
        async () =>
          await orchestrator.remove(id, never).then(
            () => true,
            () => false,
          ),
        SLOW,
      );
  });
  await orchestrator.create({ id: there, spec: SPEC, node: 'a', start: true }, ignore, never);
  await orchestrator.create({ id: away, spec: SPEC, node: 'b', start: true }, ignore, never);
  const channel = await orchestrator.openStream(away, never);
  const cutOff = new Promise((closed) => channel.once('close', closed));
  const heard: string[] = [];
  const over = new AbortController();
  const listening = (async () => {
    for await (const change of orchestrator.changes(over.signal))
      if (change !== null && 'node' in change) heard.push(`${change.node} ${change.problem === null}`);
  })();
  await waitUntil(() => heard.length === NAMES.length, SLOW);
  process.kill(pid, 'SIGSTOP');
  await waitUntil(() => heard.at(-1) === 'b false', { ...SLOW, what: 'the node is noticed' });
  await cutOff;
  await assert.rejects(orchestrator.get(away, never), isAway);
  assert.equal((await orchestrator.get(there, never))?.state, 'running');
  assert.deepEqual(
    (await orchestrator.list(never)).map(({ id }) => id),
    [there],
  );
  process.kill(pid, 'SIGCONT');
  await waitUntil(() => heard.at(-1) === 'b true', { ...SLOW, what: 'the node is back' });
  assert.equal((await orchestrator.get(away, never))?.state, 'running');
  over.abort();
  await listening;
});

test('an engine that was killed is used again when it is back, with the sandboxes that it had', async (t) => {
  const { orchestrator } = fleet.ports;
  const id = randomUUID();
  t.after(() => orchestrator.remove(id, never));
  await orchestrator.create({ id, spec: SPEC, node: 'c', start: true }, ignore, never);
  const engine = engines[2] ?? assert.fail();
  await engine.kill();
  await assert.rejects(orchestrator.get(id, never), isAway);
  await engine.launch();
  await waitUntil(
    async () => (await orchestrator.get(id, never).catch(() => undefined))?.state === 'running',
    SLOW,
  );
  const channel = await orchestrator.openChannel(id, never);
  const { stdout } = await channel.run({ cmd: 'echo', args: ['back'] });
  channel.close();
  assert.equal(Buffer.from(stdout).toString(), 'back\n');
});
