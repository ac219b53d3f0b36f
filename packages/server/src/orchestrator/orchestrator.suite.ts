import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { randomUUID } from 'node:crypto';
import { waitUntil } from '@svc/contract/testing';
import { ChannelClient, PlatformError } from '@svc/contract';
import type { ReportedChange, SandboxReport } from '@svc/contract/orchestrator';
import { socketTransport } from '@svc/contract/node-socket-transport';
import type { OpenedOrchestrator } from './nodes.suite.ts';
import type { Orchestrator } from './orchestrator.ts';

const GRACE = { graceMs: 500 };
const TRUE = { key: 'true', cmd: 'true', args: [], stdinFd: 3 };
const never = new AbortController().signal;
const ignore = () => undefined;
const failsWith = (code: string) => (error: unknown) => PlatformError.is(error) && error.code === code;

/** Every bullet of the comments of `Orchestrator` and `ImageStore`. */
export function orchestratorSuite(name: string, open: (t: TestContext) => Promise<OpenedOrchestrator>): void {
  describe(`the orchestrator ${name}`, () => {
    const made = async (t: TestContext) => {
      const { orchestrator, spec } = await open(t);
      const id = randomUUID();
      t.after(() => orchestrator.remove(id, never));
      const report = await orchestrator.create({ id, spec }, ignore, never);
      return { orchestrator, spec, id, report };
    };

    test('makes a sandbox that does not run yet', async (t) => {
      const { orchestrator, id, report } = await made(t);
      assert.equal(report.id, id);
      assert.ok(report.state === 'created' || report.state === 'stopped');
      assert.equal((await orchestrator.get(id, never))?.state, report.state);
    });

    test('refuses an id that is taken', async (t) => {
      const { orchestrator, id, spec } = await made(t);
      await assert.rejects(
        orchestrator.create({ id, spec }, ignore, never),
        failsWith('name_already_exists'),
      );
    });

    test('checks ahead what a create would refuse, and makes nothing', async (t) => {
      const { orchestrator, spec } = await open(t);
      const before = (await orchestrator.list(never)).length;
      await orchestrator.check({ spec }, never);
      const isolation = 'no-such-class' as never;
      const isUnavailable = failsWith('isolation_unavailable');
      await assert.rejects(orchestrator.check({ spec, isolation }, never), isUnavailable);
      const id = randomUUID();
      await assert.rejects(orchestrator.create({ id, spec, isolation }, ignore, never), isUnavailable);
      assert.equal((await orchestrator.list(never)).length, before);
    });

    test('refuses a policy beyond its ceiling, and holds a sandbox to one that is lowered', async (t) => {
      const { orchestrator, spec } = await open(t);
      const network = { policy: { default_egress: 'allow' as const } };
      const request = { spec: { ...spec, network }, networkCeiling: ['public'] };
      const isBeyond = failsWith('network_ceiling_exceeded');
      await assert.rejects(orchestrator.check(request, never), isBeyond);
      const id = randomUUID();
      await assert.rejects(orchestrator.create({ id, ...request }, ignore, never), isBeyond);
      await orchestrator.create({ id, ...request, networkCeiling: null }, ignore, never);
      t.after(() => orchestrator.remove(id, never));
      const question = { id, host: '10.0.0.1', port: 80, protocol: 'tcp' as const };
      assert.equal((await orchestrator.explainNetwork(question, never)).action, 'allow');
      const report = await orchestrator.setNetwork(id, { ...network, networkCeiling: ['public'] }, never);
      assert.deepEqual([report.network, report.networkCeiling], [network, ['public']]);
      const reported = await orchestrator.explainNetwork(question, never);
      assert.deepEqual([reported.action, reported.decidedBy], ['deny', 'ceiling']);
    });

    test('changes what a sandbox may reach, refuses what a create would, and explains both', async (t) => {
      const { orchestrator, id } = await made(t);
      const closed = { policy: { default_egress: 'deny' as const, rules: [] } };
      assert.deepEqual((await orchestrator.setNetwork(id, closed, never)).network, closed);
      const nonsense = { cidr: 'nowhere' };
      const rule = { direction: 'egress' as const, action: 'allow' as const, destination: nonsense };
      const refused = orchestrator.setNetwork(id, { policy: { rules: [rule] } }, never);
      await assert.rejects(refused, failsWith('invalid_sandbox_config'));
      assert.deepEqual((await orchestrator.get(id, never))?.network, closed);
      const question = { host: '9.9.9.9', port: 443, protocol: 'tcp' } as const;
      assert.equal((await orchestrator.explainNetwork({ id, ...question }, never)).action, 'deny');
      const network = { policy: { default_egress: 'allow' as const } };
      const planned = { id: randomUUID(), network, ...question };
      assert.equal((await orchestrator.explainNetwork(planned, never)).action, 'allow');
      const unknown = orchestrator.setNetwork(planned.id, closed, never);
      await assert.rejects(unknown, failsWith('sandbox_not_found'));
    });

    test('changes how long a sandbox may run and be idle, whether it runs or not', async (t) => {
      const { orchestrator, id } = await made(t);
      for (const lifecycle of [
        { max_duration_secs: 3600, idle_timeout_secs: 60 },
        { max_duration_secs: null, idle_timeout_secs: null },
      ]) {
        assert.deepEqual((await orchestrator.setLifecycle(id, lifecycle, never)).lifecycle, lifecycle);
        assert.deepEqual((await orchestrator.get(id, never))?.lifecycle, lifecycle);
        await orchestrator.start(id, never);
      }
      const none = { max_duration_secs: null, idle_timeout_secs: null };
      const unknown = orchestrator.setLifecycle(randomUUID(), none, never);
      await assert.rejects(unknown, failsWith('sandbox_not_found'));
    });

    test('reports to every caller that the network of a sandbox has changed', async (t) => {
      const { orchestrator, id } = await made(t);
      const over = new AbortController();
      t.after(() => over.abort());
      const reported: (string | undefined)[] = [];
      void (async () => {
        for await (const change of sandboxChanges(orchestrator, over.signal)) reported.push(change.id);
      })().catch(() => undefined);
      // The first change proves that the subscription is active, which cannot be observed otherwise.
      await waitUntil(async () => {
        await orchestrator.setNetwork(id, { policy: { default_egress: 'deny', rules: [] } }, never);
        return reported.includes(id);
      });
    });

    test('logs connections that published ports refused, and has no log of an unknown sandbox', async (t) => {
      const { orchestrator, id } = await made(t);
      const connection = { address: '192.0.2.7', port: 80, protocol: 'tcp', rule: null, count: 3 } as const;
      await orchestrator.noteRefused(id, { connections: [connection], leftOut: 0 }, never);
      const read = async (verdict: 'allow' | 'deny') =>
        await Array.fromAsync(orchestrator.networkLog(id, { verdict }, never));
      const [line] = await read('deny');
      assert.ok(line !== undefined && 'entry' in line);
      const { kind, address, port, decidedBy, count } = line.entry;
      assert.deepEqual([kind, address, port, decidedBy, count], ['ingress', '192.0.2.7', 80, 'default', 3]);
      assert.deepEqual(await read('allow'), []);
      const behind = { after: line.entry.sequence, follow: true };
      assert.deepEqual(
        await Array.fromAsync(orchestrator.networkLog(id, behind, never)),
        [],
        'it does not run',
      );
      await assert.rejects(
        Array.fromAsync(orchestrator.networkLog(randomUUID(), {}, never)),
        failsWith('sandbox_not_found'),
      );
    });

    test('reports the spec as image and host resolved it', async (t) => {
      const { orchestrator, id, report } = await made(t);
      assert.ok(report.resolved !== null && report.resolved.workdir.startsWith('/'));
      assert.notEqual(report.resolved.user, '');
      assert.deepEqual((await orchestrator.get(id, never))?.resolved, report.resolved);
    });

    test('a create that fails leaves nothing', async (t) => {
      const { orchestrator, spec } = await open(t);
      const id = randomUUID();
      const missing = {
        ...spec,
        image: { type: 'oci' as const, reference: 'missing' },
        pull_policy: 'never' as const,
      };
      await assert.rejects(orchestrator.create({ id, spec: missing }, ignore, never), PlatformError);
      assert.equal(await orchestrator.get(id, never), undefined);
    });

    test('an image that is there is pulled, and one that is not says so', async (t) => {
      const { imageStore, spec } = await open(t);
      const { reference } = spec.image;
      const messages: string[] = [];
      const report = ({ message }: { readonly message: string }) => void messages.push(message);
      const image = await imageStore.pullImage(
        { reference, policy: 'if_missing', scope: 'one' },
        report,
        never,
      );
      assert.ok(image.sizeBytes > 0);
      assert.notDeepEqual(messages, []);
      const missing = { reference: 'missing', policy: 'never' } as const;
      await assert.rejects(imageStore.pullImage(missing, ignore, never), failsWith('image_not_found'));
    });

    test('shows what the operator provides to every scope, which none can give up', async (t) => {
      const { imageStore, spec } = await open(t);
      const { reference } = spec.image;
      await imageStore.pullImage({ reference, policy: 'if_missing', scope: 'one' }, ignore, never);
      for (const scope of ['one', 'other']) {
        const { images, storedBytes } = await imageStore.listHeldImages(scope, never);
        assert.deepEqual([images.map(({ usedAt }) => usedAt).includes(null), storedBytes], [true, 0]);
        await assert.rejects(imageStore.releaseImage(scope, reference, never), failsWith('image_not_found'));
      }
    });

    test('makes a sandbox that runs at once, with the class it got', async (t) => {
      const { orchestrator, nodes, spec } = await open(t);
      const id = randomUUID();
      t.after(() => orchestrator.remove(id, never));
      const report = await orchestrator.create({ id, spec, start: true }, ignore, never);
      assert.equal(report.state, 'running');
      assert.ok(Date.parse(report.startedAt ?? '') <= Date.now());
      assert.equal(report.isolation, (await nodes.describe(never)).isolation);
      assert.deepEqual(same(await orchestrator.get(id, never)), same(report));
    });

    test('starts, says since when, and starts again without a change', async (t) => {
      const { orchestrator, id } = await made(t);
      const report = await orchestrator.start(id, never);
      assert.equal(report.state, 'running');
      assert.ok(Date.parse(report.startedAt ?? '') <= Date.now());
      assert.equal(report.endedAt, null);
      assert.deepEqual(same(await orchestrator.start(id, never)), same(report));
    });

    test('stops, says when and why it ended, and stops again without complaint', async (t) => {
      const { orchestrator, id } = await made(t);
      await orchestrator.start(id, never);
      const report = await orchestrator.stop(id, GRACE, never);
      assert.equal(report.state, 'stopped');
      assert.ok((report.endedAt ?? '') >= (report.startedAt ?? ''));
      assert.equal(report.end?.reason, 'stopped');
      assert.equal((await orchestrator.stop(id, GRACE, never)).state, 'stopped');
    });

    test('removes in any state, and again', async (t) => {
      const { orchestrator, id } = await made(t);
      await orchestrator.start(id, never);
      await orchestrator.remove(id, never);
      await orchestrator.remove(id, never);
      assert.equal(await orchestrator.get(id, never), undefined);
      assert.ok(!(await orchestrator.list(never)).some((report: SandboxReport) => report.id === id));
    });

    test('knows no sandbox that was not made', async (t) => {
      const { orchestrator } = await open(t);
      const id = randomUUID();
      await assert.rejects(orchestrator.start(id, never), failsWith('sandbox_not_found'));
      await assert.rejects(orchestrator.stop(id, GRACE, never), failsWith('sandbox_not_found'));
      await assert.rejects(orchestrator.openChannel(id, never), failsWith('sandbox_not_found'));
      await assert.rejects(orchestrator.openStream(id, never), failsWith('sandbox_not_found'));
      await assert.rejects(orchestrator.expectProcess(id, TRUE, never), failsWith('sandbox_not_found'));
      await assert.rejects(Array.fromAsync(orchestrator.logs(id, {}, never)), failsWith('sandbox_not_found'));
    });

    test('opens a channel into a sandbox that runs, and none into one that does not', async (t) => {
      const { orchestrator, id } = await made(t);
      await assert.rejects(orchestrator.openChannel(id, never), failsWith('sandbox_not_running'));
      await orchestrator.start(id, never);
      const channel = await orchestrator.openChannel(id, never);
      t.after(() => channel.close());
      const { code, stdout } = await channel.run({ cmd: 'sh', args: ['-c', 'echo inside'] });
      assert.deepEqual([code, Buffer.from(stdout).toString()], [0, 'inside\n']);
    });

    test('reports how the latest run ended when a channel to a stopped sandbox is opened', async (t) => {
      const { orchestrator, id } = await made(t);
      await orchestrator.start(id, never);
      await orchestrator.stop(id, { graceMs: 0 }, never);
      const opens = [() => orchestrator.openChannel(id, never), () => orchestrator.openStream(id, never)];
      for (const open of opens) {
        await assert.rejects(open, (error) => {
          assert.ok(failsWith('sandbox_not_running')(error));
          const { state, reason, ended } = (error as PlatformError).details ?? {};
          assert.deepEqual([state, reason, typeof ended], ['stopped', 'stopped', 'string']);
          return true;
        });
      }
    });

    test('opens streams that are clients of their own, and none into a sandbox that does not run', async (t) => {
      const { orchestrator, id } = await made(t);
      await assert.rejects(orchestrator.openStream(id, never), failsWith('sandbox_not_running'));
      await orchestrator.start(id, never);
      const open = async () =>
        ChannelClient.connect(socketTransport(await orchestrator.openStream(id, never)));
      const [leaving, staying] = [await open(), await open()];
      t.after(() => staying.close());
      const { pid } = await leaving.exec({ cmd: 'sleep', args: ['60'] });
      const isThere = async () =>
        (await staying.run({ cmd: 'sh', args: ['-c', `kill -0 ${pid}`] })).code === 0;
      assert.equal(await isThere(), true);
      leaving.close();
      await waitUntil(async () => !(await isThere()), 'the process of the client that left is killed');
    });

    test('keeps a log that can be read on from any entry, and followed until the run is over', async (t) => {
      const { orchestrator, id } = await made(t);
      await orchestrator.start(id, never);
      const followed = Array.fromAsync(orchestrator.logs(id, { sources: ['system'], follow: true }, never));
      await orchestrator.stop(id, GRACE, never);
      const entries = await Array.fromAsync(orchestrator.logs(id, { sources: ['system'] }, never));
      assert.ok(entries.length >= 2, `${entries.length} entries`);
      assert.deepEqual(await followed, entries);
      const [first] = entries;
      const rest = orchestrator.logs(id, { sources: ['system'], cursor: first?.cursor ?? '' }, never);
      assert.deepEqual(await Array.fromAsync(rest), entries.slice(1));
      const last = orchestrator.logs(id, { sources: ['system'], tail: 1 }, never);
      assert.deepEqual(await Array.fromAsync(last), entries.slice(-1));
    });

    test('measures what runs and nothing else', async (t) => {
      const { orchestrator, id } = await made(t);
      const isMeasured = async () => (await orchestrator.metrics(never)).some((usage) => usage.id === id);
      assert.equal(await isMeasured(), false);
      await orchestrator.start(id, never);
      assert.equal(await isMeasured(), true);
      await orchestrator.stop(id, GRACE, never);
      assert.equal(await isMeasured(), false);
    });

    test('an answer covers every earlier change and none that follows', async (t) => {
      const { orchestrator, id } = await made(t);
      const over = new AbortController();
      t.after(() => over.abort());
      const reported: number[] = [];
      const latest = () => reported.at(-1) ?? 0;
      const listening = (async () => {
        for await (const change of sandboxChanges(orchestrator, over.signal))
          if (change.id === id) reported.push(change.sequence ?? Number.NaN);
      })();
      listening.catch(() => undefined);
      let before = Number.NaN;
      await waitUntil(async () => {
        await orchestrator.start(id, never);
        ({ sequence: before = Number.NaN } = await orchestrator.stop(id, GRACE, never));
        return reported.length > 0;
      }, 'a change that is reported');
      const { sequence: running = Number.NaN } = await orchestrator.start(id, never);
      await waitUntil(() => latest() > before, 'the change of the start');
      assert.ok(latest() <= running, `${latest()} is in the answer ${running}`);
      const { sequence: stopped = Number.NaN } = await orchestrator.stop(id, GRACE, never);
      await waitUntil(() => latest() > running, 'the change of the stop');
      const { sequence: removed = Number.NaN } = await orchestrator.remove(id, never);
      assert.ok(running < stopped && stopped < removed, `${running}, ${stopped}, ${removed}`);
      await waitUntil(() => latest() > stopped, 'the change of the removal');
      assert.ok(latest() <= removed, `${latest()} is in the answer ${removed}`);
    });

    test('reports changes as they happen', async (t) => {
      const { orchestrator, id } = await made(t);
      const over = new AbortController();
      t.after(() => over.abort());
      let isReported = false;
      const listening = (async () => {
        for await (const changed of sandboxChanges(orchestrator, over.signal))
          isReported ||= changed.id === id;
      })();
      listening.catch(() => undefined);
      // Repeats until the subscription, whose start cannot be observed, reports a change.
      await waitUntil(async () => {
        await orchestrator.start(id, never);
        await orchestrator.stop(id, GRACE, never);
        return isReported;
      }, 'a change that is reported');
    });
  });
}

async function* sandboxChanges(
  orchestrator: Orchestrator,
  signal: AbortSignal,
): AsyncGenerator<ReportedChange> {
  for await (const change of orchestrator.changes(signal))
    if (change !== null && 'id' in change) yield change;
}

/** But for what else became messages in the meantime. */
function same(report: SandboxReport | undefined): Partial<SandboxReport> {
  const { sequence: _, ...rest } = report ?? {};
  return rest;
}
