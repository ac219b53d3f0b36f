import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import type { Network, Patch, SandboxSpec } from '@svc/contract';
import { importConfigured } from './image-fixture.ts';
import { CLASSES, startSandbox, TestSandbox } from './sandbox-fixture.ts';
import { TestEngine } from './start-engine.ts';

const CONFIGURED = 'svc/configured';

let engine: TestEngine;
let source: string;
before(async () => {
  source = await mkdtemp(join(tmpdir(), 'svc-source-'));
  await mkdir(join(source, 'tree/below'), { recursive: true });
  await writeFile(join(source, 'tree/below/file'), 'deep', { mode: 0o640 });
  await writeFile(join(source, 'file'), 'from the host', { mode: 0o600 });
  await symlink('/etc/shadow', join(source, 'tree/link'));
  engine = await TestEngine.start({ args: ['--bind-root', source] });
  const config = {
    Env: ['PATH=/bin:/opt/bin', 'FROM_IMAGE=yes', 'BOTH=image'],
    WorkingDir: '/srv',
    User: 'user',
    Entrypoint: ['/bin/echo', 'entry'],
    Cmd: ['default'],
  };
  await importConfigured(engine, CONFIGURED, config, [
    ...['bin/', 'dev/', 'etc/', 'proc/', 'srv/', 'sys/', 'tmp/'].map((name) => ({ name, mode: 0o755 })),
    { name: 'bin/busybox', mode: 0o755, body: await readFile('/bin/busybox') },
    ...['sh', 'env', 'id', 'pwd', 'echo', 'sleep'].map((name) => ({
      name: `bin/${name}`,
      type: 'symlink' as const,
      linkname: 'busybox',
    })),
    { name: 'etc/passwd', body: 'root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n' },
  ]);
});
after(async () => {
  await engine.destroy();
  await rm(source, { recursive: true });
});

for (const isolation of CLASSES) {
  describe(`on class ${isolation}`, { concurrency: false }, () => {
    async function startConfigured(more: Partial<SandboxSpec> = {}): Promise<TestSandbox> {
      const spec = { image: { type: 'oci', reference: CONFIGURED }, ...more } as const;
      return new TestSandbox(engine, await engine.client.createSandbox({ isolation, spec, start: true }));
    }

    async function refusal(patches: Patch[]): Promise<{ code?: string; message: string; details?: unknown }> {
      const before = (await engine.client.listSandboxes()).length;
      const error = await startSandbox(engine, isolation, { patches }).then(
        () => assert.fail('the patch was applied'),
        (reason: Error) => reason,
      );
      assert.equal((await engine.client.listSandboxes()).length, before, 'nothing is left of it');
      return error;
    }

    test('the image says how processes run', async () => {
      const sandbox = await startConfigured();
      const { stdout } = await sandbox.sh(
        'echo $FROM_IMAGE $BOTH; pwd; id -u; id -g; echo $HOME; echo $PATH',
      );
      assert.equal(stdout, 'yes image\n/srv\n1000\n1000\n/home/user\n/.svc/scripts:/bin:/opt/bin\n');
      await sandbox.remove();
    });

    test('the spec wins over the image, and a call over both', async () => {
      const sandbox = await startConfigured({
        env: [
          { key: 'BOTH', value: 'spec' },
          { key: 'OWN', value: 'two words = "quoted" $HOME' },
        ],
        runtime: { workdir: '/tmp', user: 'root', shell: '/bin/sh' },
      });
      const script = 'echo $FROM_IMAGE $BOTH "$OWN" $SHELL; pwd; id -u';
      assert.equal(
        (await sandbox.sh(script)).stdout,
        'yes spec two words = "quoted" $HOME /bin/sh\n/tmp\n0\n',
      );
      const call = { cmd: '/bin/sh', args: ['-c', 'echo $BOTH; pwd; id -u'] };
      const own = await sandbox.run({ ...call, env: { BOTH: 'call' }, cwd: '/etc', user: 'user' });
      assert.equal(own.stdout, 'call\n/etc\n1000\n');
      await sandbox.remove();
    });

    test('the command runs behind the entrypoint, and without a command of the caller neither runs', async () => {
      const quiet = await startConfigured();
      const talking = await startConfigured({ runtime: { cmd: ['said', 'this'] } });
      const replaced = await startConfigured({ runtime: { entrypoint: ['/bin/echo'], cmd: ['alone'] } });
      const ended = async ({ id }: TestSandbox) => (await engine.client.getSandbox(id)).state === 'stopped';
      await waitUntil(async () => (await ended(talking)) && (await ended(replaced)));
      const said = ({ id }: TestSandbox) => Array.fromAsync(engine.client.logs(id), ({ text }) => text);
      assert.deepEqual(await said(talking), ['entry said this\n']);
      assert.deepEqual(await said(replaced), ['alone\n']);
      assert.equal((await engine.client.getSandbox(quiet.id)).state, 'running');
      assert.deepEqual(await said(quiet), []);
      for (const sandbox of [quiet, talking, replaced]) await sandbox.remove();
    });

    test('users are found by name and number, with a group of their own or another', async () => {
      const sandbox = await startSandbox(engine, isolation, { runtime: { user: 'user' } });
      const ids = async (user?: string) =>
        (await sandbox.sh('echo $(id -u):$(id -g)', user === undefined ? {} : { user })).stdout.trim();
      assert.equal(await ids(), '1000:1000');
      assert.equal(await ids('root'), '0:0');
      assert.equal(await ids('nobody'), '65534:65534');
      assert.equal(await ids('1000'), '1000:1000');
      assert.equal(await ids('4321'), '4321:0');
      assert.equal(await ids('4321:77'), '4321:77');
      assert.equal(await ids('user:nogroup'), '1000:65534');
      await assert.rejects(ids('nemo'), /unknown user "nemo"/);
      await assert.rejects(ids('user:nemo'), /unknown group "nemo"/);
      await sandbox.remove();
    });

    test('hostname, hosts file and labels are as asked for', async () => {
      const labels = { team: 'blue', 'a.b/c': 'ünï' };
      const sandbox = await startSandbox(engine, isolation, { runtime: { hostname: 'my-host' }, labels });
      const { stdout } = await sandbox.sh('hostname; cat /etc/hostname; grep -c my-host /etc/hosts');
      assert.equal(stdout, 'my-host\nmy-host\n1\n');
      const { spec } = await engine.client.getSandbox(sandbox.id);
      assert.deepEqual(spec.labels, labels);
      await sandbox.remove();
    });

    test('scripts are on the PATH of every user and cannot be changed', async () => {
      const scripts = { greet: '#!/bin/sh\necho "hello $1"\n', 'set-up_2.sh': '#!/bin/sh\nid -u\n' };
      const sandbox = await startSandbox(engine, isolation, { runtime: { scripts } });
      assert.equal((await sandbox.run({ cmd: 'greet', args: ['you'] })).stdout, 'hello you\n');
      assert.equal((await sandbox.sh('set-up_2.sh', { user: 'user' })).stdout, '1000\n');
      assert.notEqual((await sandbox.sh('echo x > /.svc/scripts/greet')).code, 0);
      await sandbox.remove();
    });

    test('patches of every type are applied in order, before the main process runs', async () => {
      const sandbox = await startSandbox(engine, isolation, {
        patches: [
          { type: 'mkdir', path: '/app/data', mode: 0o700 },
          { type: 'mkdir', path: '/app/data' },
          { type: 'text', path: '/app/new/text', content: 'first\n', mode: 0o600 },
          { type: 'append', path: '/app/new/text', content: 'second\n' },
          { type: 'file', path: '/app/bytes', content: [0, 255, 10] },
          { type: 'text', path: '/etc/group', content: 'root:x:0:\n', replace: true },
          { type: 'symlink', target: '/app/new/text', link: '/app/link' },
          { type: 'copy_file', src: join(source, 'file'), dst: '/app/copied', mode: 0o644 },
          { type: 'copy_dir', src: join(source, 'tree'), dst: '/app/tree' },
          { type: 'text', path: '/app/gone', content: 'x' },
          { type: 'remove', path: '/app/gone' },
          { type: 'remove', path: '/app/never-was' },
        ],
        runtime: { cmd: ['/bin/sh', '-c', 'cat /app/link > /app/seen; sleep 1000'] },
      });
      await waitUntil(async () => (await sandbox.sh('cat /app/seen')).stdout === 'first\nsecond\n', {
        what: 'the main process has seen the patches',
      });
      const script = `stat -c "%a %n" /app/data /app/new/text /app/copied /app/tree/below/file; cat /app/link /etc/group
        od -An -tx1 /app/bytes; cat /app/copied; echo; cat /app/tree/below/file; echo; readlink /app/tree/link; ls /app`;
      assert.equal(
        (await sandbox.sh(script)).stdout,
        [
          '700 /app/data\n600 /app/new/text\n644 /app/copied\n640 /app/tree/below/file\n',
          'first\nsecond\nroot:x:0:\n 00 ff 0a\nfrom the host\ndeep\n/etc/shadow\n',
          'bytes\ncopied\ndata\nlink\nnew\nseen\ntree\n',
        ].join(''),
      );
      // Once: what a sandbox does with them afterwards stays.
      await sandbox.sh('echo mine > /app/new/text');
      await engine.client.stopSandbox(sandbox.id, { graceMs: 100 });
      await engine.client.startSandbox(sandbox.id);
      assert.equal((await sandbox.sh('cat /app/new/text')).stdout, 'mine\n');
      await sandbox.remove();
    });

    test('a patch that cannot be applied is named, and no sandbox is left', async () => {
      const fine: Patch = { type: 'mkdir', path: '/fine' };
      const exists = await refusal([fine, { type: 'text', path: '/etc/passwd', content: '' }]);
      assert.equal(exists.code, 'invalid_sandbox_config');
      assert.match(exists.message, /patches\[1\] \(text\).*exists already; set replace to true/);
      assert.deepEqual((exists.details as { field: string }).field, 'patches[1]');
      const outside = await refusal([fine, fine, { type: 'copy_file', src: '/etc/shadow', dst: '/shadow' }]);
      assert.equal(outside.code, 'invalid_sandbox_config');
      const missing = await refusal([{ type: 'copy_dir', src: join(source, 'nowhere'), dst: '/x' }]);
      assert.match(missing.message, /patches\[0\] \(copy_dir\)/);
      const link = await refusal([{ type: 'copy_file', src: join(source, 'tree/link/x'), dst: '/x' }]);
      assert.equal(link.code, 'invalid_sandbox_config');
    });

    test('with the network off there is loopback and nothing else', async () => {
      const sandbox = await startSandbox(engine, isolation, { network: { enabled: false } });
      assert.equal(sandbox.view.address, null);
      const { stdout } = await sandbox.sh(
        'ip -o link | cut -d" " -f2; ip route | grep -v "dev lo"; cat /etc/resolv.conf',
      );
      assert.equal(stdout, 'lo:\n');
      // A connection that comes before the listener is refused, and tried again.
      const echo = `nc -l -p 99 -e echo over loopback & i=0
          until nc 127.0.0.1 99 < /dev/null 2> /dev/null || [ $i = 300 ]; do i=$((i+1)); sleep 0.1; done`;
      assert.equal((await sandbox.sh(echo)).stdout, 'over loopback\n');
      await sandbox.remove();
    });

    test('with a policy that denies all there is a link, and no name is answered over it', async () => {
      const network: Network = { policy: { default_egress: 'deny', rules: [] } };
      const sandbox = await startSandbox(engine, isolation, { network });
      assert.notEqual(sandbox.view.address, null);
      const { stdout } = await sandbox.sh('nslookup example.org 2>&1 | grep -c "^Address.*[0-9]\\.[0-9]" ');
      // Only the resolver's own address is shown.
      assert.ok(Number(stdout) <= 1, stdout);
      await sandbox.remove();
    });
  });
}

test('fields that cannot be enforced are refused by name, not ignored', async () => {
  const refused = async (more: Partial<SandboxSpec>) => {
    const outcome = await startSandbox(engine, 'container', more).then(
      () => assert.fail('it was accepted'),
      (error: Error & { code?: string; details?: { field?: string } }) => error,
    );
    assert.equal(outcome.code, 'invalid_sandbox_config');
    return outcome.details?.field;
  };
  const rule = { direction: 'egress', action: 'allow', destination: { domain: 'example.org' } } as const;
  assert.equal(
    await refused({ network: { interface: { ipv6_pool: 'fd00::/64' } } }),
    'network.interface.ipv6_pool',
  );
  const ipv6 = { ...rule, destination: { cidr: '2001:db8::/32' } };
  assert.equal(
    await refused({ network: { policy: { rules: [ipv6] } } }),
    'network.policy.rules[0].destination.cidr',
  );
  assert.equal(await refused({ init: { cmd: '/sbin/init' } }), 'init');
  assert.equal(await refused({ labels: { 'svc.x': '1' } }), 'labels.svc.x');
  assert.equal(await refused({ mounts: [{ type: 'tmpfs', guest: '/proc/x' }] }), 'mounts[0].guest');
  assert.equal(await refused({ mounts: [{ type: 'tmpfs', guest: '/a/../../b' }] }), 'mounts[0].guest');
});

test('an image that is not here and must not be pulled is not found', async () => {
  const spec = { image: { type: 'oci', reference: 'svc/absent' }, pull_policy: 'never' } as const;
  await assert.rejects(engine.client.createSandbox({ spec, isolation: 'container' }), {
    code: 'image_not_found',
  });
  assert.deepEqual(await engine.client.listSandboxes(), []);
});
