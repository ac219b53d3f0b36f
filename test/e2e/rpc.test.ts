import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { freePort } from '../../packages/server/src/testing/free-port.ts';
import { withEnoughTime } from '../../packages/server/src/testing/enough-time.ts';
import { BUSYBOX } from '../engine/start-engine.ts';
import { CLASSES } from '../engine/sandbox-fixture.ts';
import { TestServer } from './start-server.ts';

interface CommandResult {
  readonly exit_code: number;
  readonly output: string;
  readonly error: string;
}

for (const isolation of CLASSES) {
  describe(`JSON-RPC with class ${isolation}`, { concurrency: false }, () => {
    let server: TestServer;
    let shared: string;
    before(async () => {
      shared = await mkdtemp(join(tmpdir(), 'svc-shared-'));
      server = await TestServer.start({ engineArgs: ['--isolation', isolation, '--bind-root', shared] });
    });
    after(async () => {
      await server.destroy();
      await rm(shared, { recursive: true, force: true });
    });

    const start = (sandbox: string, config: object = {}) =>
      server.call('sandbox.start', { sandbox, config: { image: BUSYBOX, ...config } });
    const stop = (sandbox: string) => server.call('sandbox.stop', { sandbox });
    const sh = async (sandbox: string, script: string): Promise<CommandResult> => {
      const params = { sandbox, command: 'sh', args: ['-c', script] };
      const { result, error } = await server.call('sandbox.command.run', params);
      assert.equal(error, undefined);
      return result as CommandResult;
    };

    test('start, run, stop: the typical flow', async () => {
      assert.equal((await start('flow')).result, 'Sandbox flow started successfully');
      const run = await server.call('sandbox.command.run', {
        sandbox: 'flow',
        command: 'echo',
        args: ['hi'],
      });
      assert.deepEqual(run.result, {
        command: 'echo',
        args: ['hi'],
        exit_code: 0,
        success: true,
        output: 'hi\n',
        error: '',
      });
      assert.equal((await stop('flow')).result, 'Sandbox flow stopped successfully');
    });

    test('the channel answers as soon as start does, every time', async () => {
      for (let round = 0; round < 5; round += 1) {
        await start('eager');
        assert.equal((await sh('eager', 'echo there')).output, 'there\n');
        await stop('eager');
      }
    });

    test('environment, working directory, scripts and limits of the config hold inside', async () => {
      await start('config', {
        memory: 128,
        cpus: 1,
        envs: ['GREETING=hello = world'],
        workdir: '/tmp',
        scripts: { greet: '#!/bin/sh\necho "script says $GREETING"\n' },
      });
      assert.equal((await sh('config', 'echo "$GREETING"; pwd; nproc')).output, 'hello = world\n/tmp\n1\n');
      assert.equal((await sh('config', 'greet')).output, 'script says hello = world\n');
      const { output } = await sh('config', "sed -n 's/^MemTotal: *\\([0-9]*\\) kB/\\1/p' /proc/meminfo");
      assert.ok(Number(output) <= 128 * 1024, output);
      await stop('config');
    });

    test('a volume of the host is there, and one that is read-only stays as it is', async () => {
      await writeFile(join(shared, 'note'), 'from the host\n');
      const answer = await start('volume', { volumes: [`${shared}:/data:ro`] });
      assert.equal(answer.error, undefined);
      assert.equal((await sh('volume', 'cat /data/note')).output, 'from the host\n');
      assert.notEqual((await sh('volume', 'echo x > /data/note')).exit_code, 0);
      await stop('volume');
    });

    test('a port of the host leads to the sandbox while it runs', async () => {
      const port = await freePort();
      assert.equal((await start('port', { ports: [`${port}:8080`] })).error, undefined);
      const script = "while true; do printf 'HTTP/1.0 200 OK\\r\\n\\r\\nfrom inside' | nc -l -p 8080; done";
      await sh('port', `(${script}) >/dev/null 2>&1 &`);
      const ask = async () => await (await fetch(`http://127.0.0.1:${port}/`)).text();
      const isServed = async () => (await ask().catch(() => '')) === 'from inside';
      await waitUntil(isServed, { what: 'the sandbox answers' });
      await stop('port');
      await assert.rejects(ask());
    });

    test('files survive stop and start, and go with another config', async () => {
      await start('disk');
      await sh('disk', 'echo kept > /root/file 2>/dev/null || echo kept > /file');
      await stop('disk');
      await server.call('sandbox.start', { sandbox: 'disk' });
      assert.equal((await sh('disk', 'cat /root/file /file 2>/dev/null')).output, 'kept\n');
      await stop('disk');
      await start('disk', { memory: 256 });
      assert.equal((await sh('disk', 'cat /root/file /file 2>/dev/null')).output, '');
      await stop('disk');
    });

    test('metrics have the documented units', async () => {
      await start('metrics');
      await sh('metrics', 'dd if=/dev/zero of=/blob bs=1024 count=2048 2>/dev/null; sync');
      const { result } = await server.call('sandbox.metrics.get', { sandbox: 'metrics' });
      const [entry] = (result as { sandboxes: Record<string, number>[] }).sandboxes;
      assert.partialDeepStrictEqual(entry, { namespace: 'default', name: 'metrics', running: true });
      assert.ok(Number.isInteger(entry?.['memory_usage']) && Number(entry?.['memory_usage']) < 512);
      assert.ok(Number.isInteger(entry?.['disk_usage']));
      assert.ok(Number(entry?.['cpu_usage']) >= 0);
      await stop('metrics');
    });

    test('a timeout ends the whole tree of the command', async () => {
      await start('timeout');
      const args = ['-c', 'sleep 1234 & echo begun; sleep 1234'];
      const command = { sandbox: 'timeout', command: 'sh', args };
      const { outcome } = await withEnoughTime(
        async (timeout) => await server.call('sandbox.command.run', { ...command, timeout }),
        ({ error }) => (error?.data as { output?: string } | undefined)?.output === 'begun\n',
      );
      assert.partialDeepStrictEqual(outcome.error?.data, { code: 'exec_timeout', output: 'begun\n' });
      const isOver = async () => (await sh('timeout', 'ps | grep -c "[s]leep 1234"')).output === '0\n';
      await waitUntil(isOver, { what: 'all of it has ended' });
      await stop('timeout');
    });

    test('nothing that a command printed before its end is lost', async () => {
      await start('output');
      const script = 'i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; echo last >&2';
      const { output, error } = await sh('output', script);
      assert.equal(output.split('\n').length, 20_001);
      assert.ok(output.endsWith('line 19999\n'));
      assert.equal(error, 'last\n');
      await stop('output');
    });

    test('a missing image is reported at once', async () => {
      const { error } = await server.call('sandbox.start', {
        sandbox: 'nothing',
        config: { image: '127.0.0.1:1/no/such:image' },
      });
      assert.equal(error?.code, -32_603);
      assert.match(error.message, /^sandbox start failed: .{10,}/);
      assert.doesNotMatch(error.message, /Internal server error/i);
    });
  });
}
