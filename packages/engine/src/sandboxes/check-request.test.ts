import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { PlatformError } from '@svc/contract/errors';
import { FakeNetwork } from '../testing/fake-network.ts';
import { FakeRuntime } from '../testing/fake-runtime.ts';
import { checkRequest } from './check-request.ts';

type Kit = Parameters<typeof checkRequest>[0];
const image = { type: 'oci', reference: 'x' } as const;

async function makeKit(t: TestContext): Promise<Kit & { readonly folder: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-check-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  for (const name of ['binds/mine', 'binds/theirs', 'images/mine']) {
    await mkdir(join(folder, name), { recursive: true });
  }
  await writeFile(join(folder, 'images/mine/disk.img'), '');
  return {
    folder,
    runtimes: [new FakeRuntime(join(folder, 'runtime'))],
    defaultIsolation: 'container',
    missing: new Map([['microvm', 'no runtime of this class is installed']]),
    network: new FakeNetwork(),
    cgroups: {
      parentProblem: (path) => (path === '/pods' ? undefined : `${path} is no cgroup of this host`),
    },
    readHostSize: () => ({ vcpus: 2, memoryMib: 2048, diskMib: 100_000 }),
    mounts: { bindRoots: [join(folder, 'binds')], diskImageRoots: [join(folder, 'images')] },
  };
}

async function refusal(kit: Kit, request: object): Promise<string> {
  try {
    await checkRequest(kit, { start: true, ...request } as Parameters<typeof checkRequest>[1]);
  } catch (error) {
    assert.ok(PlatformError.is(error), String(error));
    return `${error.code} ${error.message}`;
  }
  return 'accepted';
}

test('more than the host has is refused with the field and its maximum', async (t) => {
  const kit = await makeKit(t);
  const ask = (resources: object) => refusal(kit, { spec: { image, resources } });
  assert.match(await ask({ vcpus: 255 }), /^invalid_sandbox_config resources\.vcpus: must be at most 2\b/);
  assert.match(await ask({ memory_mib: 2049 }), /resources\.memory_mib: must be at most 2048\b/);
  assert.match(
    await ask({ disk_size_mib: 16_777_216 }),
    /resources\.disk_size_mib: must be at most 100000\b/,
  );
  assert.equal(await ask({ vcpus: 2, memory_mib: 2048, disk_size_mib: 100_000 }), 'accepted');
  const tiny = { ...kit, readHostSize: () => ({ vcpus: 1, memoryMib: 256, diskMib: 512 }) };
  assert.equal(await refusal(tiny, { spec: { image } }), 'accepted', 'the defaults fit every host');
});

test('a class that is missing, an init and a policy that cannot be had are refused by name', async (t) => {
  const kit = await makeKit(t);
  const missing = await refusal(kit, { spec: { image }, isolation: 'microvm' });
  assert.match(missing, /^isolation_unavailable .*no runtime of this class is installed/);
  const init = await refusal(kit, { spec: { image, init: { cmd: 'auto' } } });
  assert.match(init, /^invalid_sandbox_config init: /);
  const rule = { direction: 'egress', action: 'allow', destination: { cidr: '10.0.0.1/8' } };
  const network = { policy: { rules: [rule] } };
  assert.match(
    await refusal(kit, { spec: { image, network } }),
    /network\.policy\.rules\[0\]\.destination\.cidr: /,
  );
});

test('impossible mounts are refused by their index', async (t) => {
  const kit = await makeKit(t);
  const at = (path: string) => join(kit.folder, path);
  await symlink('../theirs', at('binds/mine/link'));
  await symlink('/etc', at('binds/mine/etc'));
  const ask = (mount: object, more: object = {}) =>
    refusal(kit, {
      hostFolder: 'mine',
      spec: {
        image,
        mounts: [
          { type: 'tmpfs', guest: '/t' },
          { guest: '/m', ...mount },
        ],
      },
      ...more,
    });
  const bind = (path: string) => ({ type: 'bind', host: at(path) });
  const disk = (host: string, more: object = {}) => ({ type: 'disk_image', host, format: 'raw', ...more });
  for (const [mount, reason] of [
    [bind('binds/theirs'), /is not inside a folder/],
    [bind('binds'), /is not inside a folder/],
    [bind('binds/mine/missing'), /does not exist/],
    [bind('binds/mine/link'), /does not exist/],
    [bind('binds/mine/etc'), /does not exist/],
    [disk('missing.img'), /does not exist/],
    [disk('../theirs/disk.img'), /does not exist/],
    [disk('disk.img', { fstype: 'xfs' }), /must hold ext4/],
    [disk('disk.img', { format: 'qcow2' }), /cannot be written to/],
  ] as const) {
    const text = await ask(mount);
    assert.ok(text.startsWith('invalid_sandbox_config mounts[1].host: '), text);
    assert.match(text, reason);
  }
  for (const mount of [bind('binds/mine'), disk('disk.img'), { type: 'bind', host: 'in/the/volume' }])
    assert.equal(await ask(mount), 'accepted');
  assert.equal(
    await ask(bind('binds/mine/later'), { start: false }),
    'accepted',
    'it may be made until then',
  );
  assert.equal(await ask(bind('binds/theirs'), { hostFolder: undefined }), 'accepted', 'the operator may');
});

test('a nameserver that the policy beside it does not open is refused with its place and the remedy', async (t) => {
  const kit = await makeKit(t);
  const ask = (nameserver: string, policy?: object) =>
    refusal(kit, {
      spec: {
        image,
        network: {
          dns: { nameservers: ['9.9.9.9', nameserver] },
          ...(policy === undefined ? {} : { policy }),
        },
      },
    });
  assert.equal(await ask('1.1.1.1'), 'accepted');
  assert.match(
    await ask('10.0.0.53:5300'),
    /^invalid_sandbox_config network\.dns\.nameservers\[1\]: network\.policy does not allow 10\.0\.0\.53 at port 5300; /,
  );
  for (const address of ['192.168.0.1', '169.254.169.254', '192.0.2.53', '[fd00::53]:53', '100.64.0.1'])
    assert.match(await ask(address), /nameservers\[1\]: network\.policy does not allow/, address);
  assert.equal(await ask('10.0.0.53', { default_egress: 'allow' }), 'accepted');
  for (const address of ['127.0.0.1', '[::1]:53', '::ffff:127.0.0.1', '172.30.0.1', '224.0.0.1'])
    assert.match(await ask(address, { default_egress: 'allow' }), /no policy opens it/, address);
  const rule = { direction: 'egress', action: 'allow', destination: { cidr: '10.0.0.0/8' } };
  const open = { direction: 'egress', action: 'allow', destination: { group: 'public' } };
  assert.equal(
    await ask('10.0.0.53', {
      rules: [{ ...rule, protocols: ['udp'], ports: [{ start: 53, end: 53 }] }, open],
    }),
    'accepted',
  );
  assert.match(await ask('10.0.0.53', { rules: [rule] }), /nameservers\[0\]: network\.policy does not allow/);
});
