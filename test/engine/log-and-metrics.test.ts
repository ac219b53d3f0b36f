import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { waitUntil } from '@svc/contract/testing';
import type { LogLevel } from '@svc/contract/spec';
import { RUNTIMES } from '../../packages/engine/src/runtime/runtimes.ts';
import { EngineOfEachRuntime } from './each-runtime.ts';
import type { TestSandbox } from './sandbox-fixture.ts';

let engines: EngineOfEachRuntime;
before(async () => {
  engines = await EngineOfEachRuntime.start();
});
after(async () => {
  await engines[Symbol.asyncDispose]();
});

async function systemLines({ engine, id }: TestSandbox): Promise<string[]> {
  const entries = await Array.fromAsync(engine.client.logs(id, { sources: ['system'] }));
  return entries.map(({ text }) => text.replace(/:.*/s, ''));
}

/** How late the timers of each thread may be. */
function slacksOf(pid: number): readonly string[] {
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    return threads.map((thread) => readFileSync(`/proc/${thread}/timerslack_ns`, 'utf8').trim());
  } catch {
    // It has ended since it was listed.
    return [];
  }
}

/** Its programs sleep without timers. */
function isKernel(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1').startsWith('runsc-');
  } catch {
    return false;
  }
}

for (const { name: runtime } of RUNTIMES) {
  describe(`on ${runtime}`, { concurrency: false }, () => {
    test('the log level says how much svc writes into the log of a sandbox, and nothing about what programs write', async () => {
      const written = async (level: LogLevel | null) => {
        const cmd = ['/bin/sh', '-c', 'echo of the program; exit 3'];
        const sandbox = await engines.start(runtime, { runtime: { log_level: level, cmd } });
        const ended = async () => (await sandbox.engine.client.getSandbox(sandbox.id)).state === 'failed';
        await waitUntil(ended, { what: 'the main command has ended' });
        const output = await Array.fromAsync(sandbox.engine.client.logs(sandbox.id));
        assert.deepEqual(
          output.map(({ text }) => text),
          ['of the program\n'],
        );
        const lines = await systemLines(sandbox);
        await sandbox.remove();
        return lines;
      };
      assert.deepEqual(await written('error'), ['failed']);
      assert.deepEqual(await written('warn'), ['failed']);
      const info = ['starting', 'running', 'stopping', 'failed'];
      assert.deepEqual(await written('info'), info);
      assert.deepEqual(await written(null), info, 'the default');
      const debug = await written('debug');
      assert.deepEqual(
        debug.filter((line) => !info.includes(line)),
        [`${runtime} has started it`, 'the main command /bin/sh has been started', 'its run has been ended'],
      );
    });

    test('at debug the log says which step of a stop took how long', async () => {
      const sandbox = await engines.start(runtime, { runtime: { log_level: 'debug' } });
      await sandbox.engine.client.stopSandbox(sandbox.id);
      const entries = await Array.fromAsync(sandbox.engine.client.logs(sandbox.id, { sources: ['system'] }));
      const ended = entries.map(({ text }) => text).find((text) => text.startsWith('its run has been ended'));
      for (const step of ['processes', 'runtime', 'disk', 'folder', 'mounts', 'network', 'total'])
        assert.match(ended ?? '', new RegExp(`[:,] ${step} [\\d.]+ ms`));
      await sandbox.remove();
    });

    test('at trace each client is logged', async () => {
      const sandbox = await engines.start(runtime, { runtime: { log_level: 'trace' } });
      await sandbox.sh('true');
      assert.ok((await systemLines(sandbox)).includes('a client connected'));
      await sandbox.remove();
    });

    test('processes are counted, not threads, and not those of the kernel', async () => {
      const sandbox = await engines.start(runtime);
      const { client } = engines.engineOf(runtime);
      const isCounted = async (count: number) => {
        const counted = async () =>
          (await client.metrics()).find(({ id }) => id === sandbox.id)?.processes === count;
        await waitUntil(counted, { what: `${count} processes`, timeoutMs: 60_000 });
      };
      await isCounted(1);
      const channel = await sandbox.connect();
      const script = 'for i in 1 2 3 4 5; do sleep 1000 & done; wait';
      const shell = await channel.exec({ cmd: '/bin/sh', args: ['-c', script] });
      await isCounted(7);
      await shell.signal(9);
      await isCounted(1);
      channel.close();
      await sandbox.remove();
    });

    test('timers of gVisor are slack in a sandbox without a process, and exact with one', async () => {
      const sandbox = await engines.start(runtime);
      const slacks = () => [...new Set(sandbox.hostPids().filter(isKernel).flatMap(slacksOf))].toSorted();
      const isResting = () => isDeepStrictEqual(slacks(), ['1000000000']);
      const isAwake = () => isDeepStrictEqual(slacks(), runtime === 'runsc' ? ['50000'] : []);
      if (runtime === 'runsc')
        await waitUntil(isResting, { what: `it rests, but: ${String(slacks())}`, timeoutMs: 60_000 });
      const channel = await sandbox.connect();
      await waitUntil(isAwake, { what: `it is awake, but: ${String(slacks())}` });
      // Also for a caller that keeps its connection, and starts nothing.
      if (runtime === 'runsc')
        await waitUntil(isResting, { what: `it rests again, but: ${String(slacks())}`, timeoutMs: 60_000 });
      await channel.files.stat('/');
      await waitUntil(isAwake, { what: `it is awake again, but: ${String(slacks())}` });
      const cat = await channel.exec({ cmd: '/bin/cat' });
      for (let round = 0; round < 20; round++) {
        await delay(50);
        assert.ok(isAwake(), `a process runs in it: ${String(slacks())}`);
      }
      await cat.closeStdin();
      await cat.exited;
      channel.close();
      // A process without a connection has exact timers too.
      await sandbox.sh('sleep 1000 > /dev/null 2>&1 & echo $! > /tmp/left');
      const seen = new Set<string>();
      await waitUntil(async () => {
        const metrics = await engines.engineOf(runtime).client.metrics();
        seen.add(metrics.find(({ id }) => id === sandbox.id)?.sampledAt ?? '');
        assert.ok(isAwake(), `something is in it: ${String(slacks())}`);
        return seen.size > 6;
      });
      await sandbox.sh('kill $(cat /tmp/left)');
      if (runtime === 'runsc')
        await waitUntil(isResting, { what: `it rests again, but: ${String(slacks())}`, timeoutMs: 60_000 });
      await sandbox.remove();
    });

    test('a sandbox is measured as often as it wants, or not at all', async () => {
      const often = await engines.start(runtime);
      const seldom = await engines.start(runtime, { runtime: { metrics_sample_interval_ms: 3_600_000 } });
      const never = await engines.start(runtime, { runtime: { disable_metrics_sample: true } });
      const { client } = engines.engineOf(runtime);
      const sampledAt = async ({ id }: TestSandbox) =>
        (await client.metrics()).find((metrics) => metrics.id === id)?.sampledAt;
      const [first, only] = [await sampledAt(often), await sampledAt(seldom)];
      assert.ok(first !== undefined && only !== undefined);
      for (let round = 0; round < 2; round++) {
        const before = await sampledAt(often);
        await waitUntil(async () => (await sampledAt(often)) !== before, { what: 'it is measured again' });
      }
      assert.equal(await sampledAt(seldom), only);
      assert.equal(await sampledAt(never), undefined);
      if (runtime !== 'runsc') {
        const used = "awk '/MemTotal/ {total=$2} /MemFree/ {free=$2} END {print total-free}' /proc/meminfo";
        const isShown = async () => Number((await never.sh(used)).stdout) > 0;
        await waitUntil(isShown, { what: 'what it uses is shown inside all the same' });
      }
      for (const sandbox of [often, seldom, never]) await sandbox.remove();
    });
  });
}
