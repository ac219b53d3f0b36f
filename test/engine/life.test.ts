import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { CLASSES, specOf, startSandbox } from './sandbox-fixture.ts';
import { TestEngine } from './start-engine.ts';

let engine: TestEngine;
before(async () => {
  engine = await TestEngine.start();
});
after(async () => {
  await engine.destroy();
});

for (const isolation of CLASSES) {
  describe(`on class ${isolation}`, { concurrency: false }, () => {
    test('a sandbox is created, started, stopped, started again with its files, and removed', async () => {
      const created = await engine.client.createSandbox({ isolation, spec: specOf() });
      assert.equal(created.state, 'created');
      assert.equal((await engine.client.startSandbox(created.id)).state, 'running');
      const sandbox = await startSandbox(engine, isolation);
      assert.deepEqual(await sandbox.sh('echo kept > /root/file; echo out; echo err >&2; exit 7'), {
        code: 7,
        reason: 'exit',
        stdout: 'out\n',
        stderr: 'err\n',
      });
      const stopped = await engine.client.stopSandbox(sandbox.id, { graceMs: 2000 });
      assert.equal(stopped.state, 'stopped');
      assert.equal(stopped.end?.reason, 'stopped');
      assert.equal((await engine.client.startSandbox(sandbox.id)).state, 'running');
      assert.equal((await sandbox.sh('cat /root/file')).stdout, 'kept\n');
      await sandbox.remove();
      await engine.client.removeSandbox(created.id);
      await assert.rejects(engine.client.getSandbox(sandbox.id), { code: 'sandbox_not_found' });
    });

    test('starting a running sandbox and stopping a stopped one change nothing', async () => {
      const sandbox = await startSandbox(engine, isolation);
      const again = await engine.client.startSandbox(sandbox.id);
      assert.equal(again.startedAt, sandbox.view.startedAt);
      await engine.client.stopSandbox(sandbox.id);
      const stopped = await engine.client.stopSandbox(sandbox.id);
      assert.equal(stopped.state, 'stopped');
      await sandbox.remove();
      await sandbox.remove();
    });

    test('a stop ends what ignores SIGTERM after the grace', async () => {
      const sandbox = await startSandbox(engine, isolation, {
        runtime: { cmd: ['/bin/sh', '-c', 'trap "" TERM; echo deaf; while :; do sleep 1; done'] },
      });
      await waitUntil(async () => (await Array.fromAsync(engine.client.logs(sandbox.id))).length > 0);
      const stopped = await engine.client.stopSandbox(sandbox.id, { graceMs: 300 });
      assert.equal(stopped.state, 'stopped');
      await sandbox.remove();
    });

    test('a removal does not wait for the grace period of a stop', async () => {
      const sandbox = await startSandbox(engine, isolation, {
        runtime: { cmd: ['/bin/sh', '-c', 'trap "" TERM; echo deaf; while :; do sleep 1; done'] },
      });
      await waitUntil(async () => (await Array.fromAsync(engine.client.logs(sandbox.id))).length > 0);
      const stopping = engine.client.stopSandbox(sandbox.id, { graceMs: 600_000 });
      await waitUntil(async () => (await engine.client.getSandbox(sandbox.id)).state === 'stopping');
      await sandbox.remove();
      assert.equal((await stopping).state, 'stopped');
    });

    test('the main command runs from the start, is logged, and its end ends the run with its code', async () => {
      const sandbox = await startSandbox(engine, isolation, {
        runtime: { cmd: ['/bin/sh', '-c', 'echo from main; echo trouble >&2; sleep 0.2; exit 3'] },
      });
      await waitUntil(async () => (await engine.client.getSandbox(sandbox.id)).state === 'failed');
      const ended = await engine.client.getSandbox(sandbox.id);
      assert.equal(ended.end?.reason, 'exited');
      assert.equal(ended.end.exitCode, 3);
      const entries = await Array.fromAsync(engine.client.logs(sandbox.id));
      assert.deepEqual(entries.map(({ source, text }) => `${source}: ${text}`).toSorted(), [
        'stderr: trouble\n',
        'stdout: from main\n',
      ]);
      await sandbox.remove();
    });

    test('following the log of a run ends with the run', async () => {
      const sandbox = await startSandbox(engine, isolation, {
        runtime: { cmd: ['/bin/sh', '-c', 'for i in 1 2 3; do echo $i; sleep 0.2; done'] },
      });
      const entries = await Array.fromAsync(
        engine.client.logs(sandbox.id, { follow: true }, AbortSignal.timeout(100_000)),
      );
      assert.equal(entries.map(({ text }) => text).join(''), '1\n2\n3\n');
      await sandbox.remove();
    });

    test('an ephemeral sandbox is gone when its run ends', async () => {
      const sandbox = await startSandbox(engine, isolation, { lifecycle: { ephemeral: true } });
      await engine.client.stopSandbox(sandbox.id, { graceMs: 0 });
      await waitUntil(async () => !(await engine.client.listSandboxes()).some(({ id }) => id === sandbox.id));
    });

    test('idle_timeout ends an unused sandbox, and not one that runs a command', async () => {
      const idle = await startSandbox(engine, isolation, { lifecycle: { idle_timeout_secs: 1 } });
      assert.equal(await workBeyondIdleTimeout(isolation), 'done\n');
      await waitUntil(async () => (await engine.client.getSandbox(idle.id)).state === 'stopped');
      assert.equal((await engine.client.getSandbox(idle.id)).end?.reason, 'idle_timeout');
      await idle.remove();
    });

    test('max_duration ends a sandbox also while it works', async () => {
      const sandbox = await startSandbox(engine, isolation, { lifecycle: { max_duration_secs: 1 } });
      const cutOff = sandbox.sh('echo so far; sleep 60');
      await waitUntil(async () => (await engine.client.getSandbox(sandbox.id)).state === 'stopped');
      assert.equal((await engine.client.getSandbox(sandbox.id)).end?.reason, 'max_duration');
      const { reason, stdout } = await cutOff;
      assert.deepEqual([reason, stdout], ['max_duration', 'so far\n']);
      await sandbox.remove();
    });

    test('a command that does not exist fails the start with its name, and leaves nothing', async () => {
      const before = (await engine.client.listSandboxes()).length;
      const spec = specOf({ runtime: { cmd: ['/no/such/program'] } });
      await assert.rejects(engine.client.createSandbox({ isolation, spec, start: true }), (error: Error) => {
        assert.match(error.message, /no\/such\/program/);
        return true;
      });
      assert.equal((await engine.client.listSandboxes()).length, before);
    });
  });
}

/** What a process prints that runs for longer than its sandbox may be idle; a busy host may need more time to start it. */
async function workBeyondIdleTimeout(isolation: (typeof CLASSES)[number]): Promise<string | undefined> {
  let failure: unknown;
  for (const seconds of [1, 5, 15]) {
    const busy = await startSandbox(engine, isolation, { lifecycle: { idle_timeout_secs: seconds } });
    try {
      return (await busy.sh(`sleep ${seconds + 3}; echo done`)).stdout;
    } catch (error) {
      failure = error;
    } finally {
      await busy.remove();
    }
  }
  throw failure;
}

test('two creates with one id: one succeeds, the other fails', async () => {
  const create = () =>
    engine.client.createSandbox({ id: 'twice', isolation: 'container', spec: specOf(), start: true });
  const outcomes = await Promise.allSettled([create(), create(), create()]);
  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1);
  for (const outcome of outcomes) {
    if (outcome.status === 'rejected') assert.equal(outcome.reason.code, 'name_already_exists');
  }
  await engine.client.removeSandbox('twice');
});

test('events report the life of a sandbox in order', async () => {
  const seen: string[] = [];
  const stop = new AbortController();
  const reading = (async () => {
    for await (const event of engine.client.events({ after: 0 }, stop.signal)) {
      if (event.sandboxId === 'reported') seen.push(event.type);
      if (event.type === 'removed' && event.sandboxId === 'reported') break;
    }
  })();
  await engine.client.createSandbox({ id: 'reported', isolation: 'container', spec: specOf(), start: true });
  await engine.client.stopSandbox('reported', { graceMs: 0 });
  await engine.client.removeSandbox('reported');
  await reading;
  stop.abort();
  assert.deepEqual(seen, ['created', 'starting', 'running', 'stopping', 'stopped', 'removed']);
});

test('events of some types come without the others, and a type that there is not is refused', async () => {
  const types = ['removed'] as const;
  await engine.client.createSandbox({ id: 'some', isolation: 'container', spec: specOf() });
  await engine.client.removeSandbox('some');
  for await (const { type, sandboxId } of engine.client.events({ after: 0, types })) {
    assert.equal(type, 'removed');
    if (sandboxId === 'some') break;
  }
  const wrong = engine.client.events({ types: ['remove'] as unknown as typeof types });
  await assert.rejects(wrong[Symbol.asyncIterator]().next(), {
    code: 'invalid_request',
    message: /^types: remove is not one of created, /,
  });
});

test('a class that the host lacks is refused with the reason', async () => {
  await assert.rejects(engine.client.createSandbox({ isolation: 'microvm', spec: specOf() }), {
    code: 'isolation_unavailable',
  });
});

test('after everything was removed nothing is left on the host but what is prepared', async () => {
  for (const sandbox of await engine.client.listSandboxes()) await engine.client.removeSandbox(sandbox.id);
  await engine.stop();
  assert.deepEqual(await engine.leftovers(), []);
  await engine.launch();
});
