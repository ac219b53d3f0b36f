import assert from 'node:assert/strict';
import { getPriority } from 'node:os';
import { after, before, describe, test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import type { Patch } from '@svc/contract';
import { eldestOf } from '../../packages/engine/src/runtime/process-identity.ts';
import { RUNTIMES } from '../../packages/engine/src/runtime/runtimes.ts';
import { EngineOfEachRuntime } from './each-runtime.ts';

let engines: EngineOfEachRuntime;
before(async () => {
  engines = await EngineOfEachRuntime.start();
});
after(async () => {
  await engines[Symbol.asyncDispose]();
});

for (const { name: runtime, isolation } of RUNTIMES) {
  describe(`on ${runtime}`, { concurrency: false }, () => {
    test('a working directory that the image lacks is made, and stays inside when a link is on its way', async () => {
      const workdir = '/srv/new/deep';
      const sandbox = await engines.start(runtime, { runtime: { workdir, user: 'user', cmd: ['/bin/pwd'] } });
      const log = async () => await Array.fromAsync(sandbox.engine.client.logs(sandbox.id));
      await waitUntil(async () => (await log()).some(({ text }) => text === `${workdir}\n`));
      await sandbox.remove();
      const patches: Patch[] = [{ type: 'symlink', target: '/tmp', link: '/way' }];
      const linked = await engines.start(runtime, { patches, runtime: { workdir: '/way/there' } });
      const { stdout } = await linked.sh('pwd; stat -c %u:%g:%a /tmp/there');
      assert.equal(stdout, '/tmp/there\n0:0:755\n');
      await linked.remove();
    });

    test('an unknown user or an impossible directory fails the start, with its name', async () => {
      await assert.rejects(engines.start(runtime, { runtime: { user: 'ghost' } }), {
        code: 'start_failed',
        message: /unknown user "ghost": it has no entry in \/etc\/passwd/,
      });
      await assert.rejects(engines.start(runtime, { runtime: { user: 'user:ghosts' } }), {
        code: 'start_failed',
        message: /unknown group "ghosts"/,
      });
      for (const workdir of ['/bin/busybox/x', '/bin/busybox']) {
        await assert.rejects(engines.start(runtime, { runtime: { workdir } }), {
          code: 'start_failed',
          message: new RegExp(`working directory ${workdir}: Not a directory`),
        });
      }
      const { client } = engines.engineOf(runtime);
      const image = { type: 'oci', reference: 'svc/busybox' } as const;
      const { id } = await client.createSandbox({ isolation, spec: { image, runtime: { user: 'ghost' } } });
      await assert.rejects(client.startSandbox(id), { code: 'start_failed' });
      const { state, end } = await client.getSandbox(id);
      assert.equal(state, 'failed');
      assert.match(end?.message ?? '', /unknown user "ghost"/);
      await client.removeSandbox(id);
    });

    test('a user whom a patch brings is known', async () => {
      const content = 'root:x:0:0::/root:/bin/sh\nlate:x:1234:1234::/:/bin/sh\n';
      const patches: Patch[] = [{ type: 'text', path: '/etc/passwd', content, replace: true }];
      const sandbox = await engines.start(runtime, { patches, runtime: { user: 'late' } });
      assert.equal((await sandbox.sh('id -u')).stdout, '1234\n');
      await sandbox.remove();
    });

    test('Ctrl-Z at a program that has its terminal for itself leaves both alive', async () => {
      const sandbox = await engines.start(runtime);
      const channel = await sandbox.connect();
      const cat = await channel.exec({ cmd: '/bin/cat', args: [], tty: true, rows: 24, cols: 80 });
      let screen = '';
      const reading = (async () => {
        for await (const chunk of cat.stdout) screen += Buffer.from(chunk).toString();
      })();
      const type = async (typed: string, shown: RegExp) => {
        await cat.writeStdin(Buffer.from(typed));
        await waitUntil(() => shown.test(screen), { what: `${String(shown)}, but: ${screen}` });
      };
      await type('one\n', /one\r\none\r\n/);
      await cat.writeStdin(Buffer.from('\u001A'));
      await type('two\n', /two\r\n(.*\n)*.*two\r\n/);
      await cat.writeStdin(Buffer.from('\u0003'));
      await reading;
      channel.close();
      await sandbox.remove();
    });

    test('output before the time limit of the sandbox arrives, with the reason of the end', async () => {
      const cmd = ['/bin/sh', '-c', 'while :; do echo main; sleep 0.05; done'];
      const sandbox = await engines.start(runtime, { lifecycle: { max_duration_secs: 2 }, runtime: { cmd } });
      const ran = await sandbox.sh("trap '' TERM; echo first; seq 1 20000; echo err >&2; sleep 600");
      assert.match(ran.stdout, /^first\n1\n[^]*\n20000\n$/);
      assert.equal(ran.stderr, 'err\n');
      assert.deepEqual([ran.code, ran.reason], [-1, 'max_duration']);
      const { client } = sandbox.engine;
      await waitUntil(async () => (await client.getSandbox(sandbox.id)).state === 'stopped');
      assert.equal((await client.getSandbox(sandbox.id)).end?.reason, 'max_duration');
      const output = await Array.fromAsync(client.logs(sandbox.id));
      assert.match(output.map(({ text }) => text).join(''), /^(main\n)+$/);
      await sandbox.remove();
    });
  });
}

test("gVisor's kernel has priority over the processes of its sandbox, which have not more than the engine", async () => {
  const sandbox = await engines.start('runsc');
  await sandbox.sh('sleep 60 >/dev/null 2>&1 &');
  const pids = sandbox.hostPids();
  const kernel = new Set(eldestOf(pids));
  const priorities = (isKernel: boolean) =>
    new Set(pids.filter((pid) => kernel.has(pid) === isKernel).map((pid) => getPriority(pid)));
  assert.deepEqual(priorities(true), new Set([-10]));
  const least = getPriority(sandbox.engine.pid);
  assert.ok([...priorities(false)].every((priority) => priority >= least));
  assert.notEqual(pids.length, kernel.size);
  await sandbox.remove();
});
