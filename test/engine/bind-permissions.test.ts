import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import type { Mount } from '@svc/contract';
import { RUNTIMES } from '../../packages/engine/src/runtime/runtimes.ts';
import { EngineOfEachRuntime } from './each-runtime.ts';

const HOST_USER = 1000;

let engines: EngineOfEachRuntime;
let root: string;
before(async () => {
  root = await mkdtemp(join(tmpdir(), 'svc-bind-'));
  engines = await EngineOfEachRuntime.start(['--bind-root', root]);
});
after(async () => {
  await engines[Symbol.asyncDispose]();
  await rm(root, { recursive: true });
});

const file = () => join(root, 'shared/file');

beforeEach(async () => {
  await rm(join(root, 'shared'), { recursive: true, force: true });
  await mkdir(join(root, 'shared'));
  await writeFile(file(), 'of the host\n');
  await chmod(file(), 0o640);
  for (const path of [join(root, 'shared'), file()]) await chown(path, HOST_USER, HOST_USER);
});

const onHost = (name: string) => {
  const { mode, uid } = statSync(join(root, 'shared', name));
  return { mode: (mode & 0o7777).toString(8), uid };
};

type BindOptions = Pick<Extract<Mount, { type: 'bind' }>, 'stat_virtualization' | 'host_permissions'>;

for (const { name: runtime } of RUNTIMES) {
  describe(`on ${runtime}`, { concurrency: false }, () => {
    const withBind = (options: BindOptions = {}) => {
      const bind: Mount = { type: 'bind', host: join(root, 'shared'), guest: '/host', ...options };
      return engines.start(runtime, { mounts: [bind] });
    };

    test('by default a guest changes owner and mode for itself alone, and finds them at its next start', async () => {
      const sandbox = await withBind();
      const script =
        'cd /host; chown 7:8 file; chmod 6777 file; umask 0; cp /bin/busybox new; chmod 4755 new; mkdir -m 1777 d';
      const { code, stderr } = await sandbox.sh(script);
      assert.equal(code, 0, stderr);
      await sandbox.sh('echo mine > /host/d/mine; chmod 600 /host/d/mine', { user: 'user' });
      const look = () => sandbox.sh('cd /host; stat -c %n:%a:%u:%g file new d d/mine; cat d/mine');
      const expected = 'file:6777:7:8\nnew:4755:0:0\nd:1777:0:0\nd/mine:600:1000:1000\nmine\n';
      assert.equal((await look()).stdout, expected);
      assert.deepEqual(onHost('file'), { mode: '640', uid: HOST_USER });
      for (const name of ['new', 'd', 'd/mine']) {
        const { mode, uid } = onHost(name);
        assert.equal(uid, HOST_USER);
        assert.equal(Number.parseInt(mode, 8) & 0o7022, 0, `${name} is ${mode}`);
      }
      const { client } = sandbox.engine;
      await client.stopSandbox(sandbox.id, { graceMs: 0 });
      await client.startSandbox(sandbox.id);
      assert.equal((await look()).stdout, expected);
      assert.notEqual(
        (await sandbox.sh('cat /host/d/mine', { user: 'nobody' })).code,
        0,
        'modes count inside',
      );
      await sandbox.remove();
    });

    test('mirrored, the host has the ordinary bits too; set-user-id and the owner stay inside', async () => {
      const sandbox = await withBind({ stat_virtualization: 'relaxed', host_permissions: 'mirror' });
      await sandbox.sh('cd /host; chown 7:8 file; chmod 6751 file; mkdir d; chmod 3770 d');
      assert.equal((await sandbox.sh('cd /host; stat -c %a:%u file d')).stdout, '6751:7\n3770:0\n');
      assert.deepEqual(onHost('file'), { mode: '751', uid: HOST_USER });
      assert.equal(onHost('d').mode, '770');
      await sandbox.remove();
    });

    test('without virtualization modes are the same on both sides, and the host gets no set-user-id bit', async () => {
      const sandbox = await withBind({ stat_virtualization: 'off' });
      await sandbox.sh('cd /host; chmod 6751 file; cp /bin/busybox new; chmod 6755 new');
      assert.equal((await sandbox.sh('cd /host; stat -c %a:%u file new')).stdout, '751:0\n755:0\n');
      assert.deepEqual(onHost('file'), { mode: '751', uid: HOST_USER });
      assert.deepEqual(onHost('new'), { mode: '755', uid: HOST_USER });
      await chmod(file(), 0o600);
      const seen = async () => (await sandbox.sh('stat -c %a /host/file')).stdout === '600\n';
      await waitUntil(seen, { what: 'a change on the host is seen' });
      await sandbox.remove();
    });

    test('impossible options of a bind are refused with the reason', async () => {
      await assert.rejects(withBind({ stat_virtualization: 'off', host_permissions: 'mirror' }), {
        code: 'invalid_sandbox_config',
        message: /host_permissions: mirror needs stat_virtualization strict or relaxed/,
      });
    });
  });
}
