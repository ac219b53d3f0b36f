import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { open, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { HostCallError } from './host-calls.ts';
import { BUILT_SVC_HOST, SvcHostCalls } from './svc-host-calls.ts';
import { interfaces, makeTestHost, uniqueInterface } from '../testing/test-host.ts';

const ID_BASE = 1_100_000_000;
const GATEWAY = '169.254.1.1';
const MAC = '02:00:5e:10:00:07';

const failsWith = (errno: string) => (error: unknown) =>
  error instanceof HostCallError && error.errno === errno;

test('namespaces with a link: the guest reaches its gateway and nothing has IPv6', async () => {
  await using host = await makeTestHost();
  const [userPath, networkPath] = [join(host.folder, 'user'), join(host.folder, 'net')];
  const hostInterface = uniqueInterface();
  const link = { hostInterface, address: '10.213.7.2', gateway: GATEWAY, mtu: 1400, mac: MAC };
  await host.calls.createNamespaces({ userPath, networkPath, idBase: ID_BASE, link });
  assert.deepEqual(await host.mounts(), [userPath, networkPath]);

  const inside = (...command: string[]) => host.run('nsenter', `--net=${networkPath}`, ...command);
  const addresses = await inside('ip', '-o', 'address');
  assert.match(addresses, /eth0\s+inet 10\.213\.7\.2\/32/);
  assert.match(addresses, /lo\s+inet 127\.0\.0\.1\/8/);
  assert.doesNotMatch(addresses, /eth0\s+inet6/);
  // The kernel tells the state of a link a moment after it has changed.
  const isUp = async (show: Promise<string>) => /mtu 1400 .*state UP/.test(await show);
  await waitUntil(() => isUp(inside('ip', '-o', 'link', 'show', 'eth0')), 'eth0 is up');
  assert.match(await inside('ip', '-o', 'link', 'show', 'eth0'), new RegExp(`link/ether ${MAC}`));
  const routes = await inside('ip', 'route');
  assert.match(routes, /default via 169\.254\.1\.1 dev eth0/);
  assert.match(routes, /169\.254\.1\.1 dev eth0 .*scope link/);
  assert.match(
    await inside('ip', 'route', 'get', '192.0.2.1'),
    /via 169\.254\.1\.1 dev eth0 src 10\.213\.7\.2/,
  );

  assert.match(await host.run('ip', 'route', 'get', '10.213.7.2'), new RegExp(`dev ${hostInterface}`));
  assert.doesNotMatch(await host.run('ip', '-o', 'address', 'show', hostInterface), /inet6/);
  await waitUntil(() => isUp(host.run('ip', '-o', 'link', 'show', hostInterface)), 'its other end is up');

  const maps = await host.run(
    'nsenter',
    `--user=${userPath}`,
    'cat',
    '/proc/self/uid_map',
    '/proc/self/gid_map',
  );
  assert.equal(maps.replaceAll(/ +/g, ' '), ` 0 ${ID_BASE} 65536\n`.repeat(2));

  await host.calls.removeNamespaces(userPath, networkPath);
  await host.calls.deleteLink(hostInterface);
  assert.ok(!(await interfaces()).includes(hostInterface));
});

test('namespaces without a link have loopback only, which is up', async () => {
  await using host = await makeTestHost();
  const [userPath, networkPath] = [join(host.folder, 'user'), join(host.folder, 'net')];
  await host.calls.createNamespaces({ userPath, networkPath, idBase: ID_BASE, link: null });
  const links = await host.run('nsenter', `--net=${networkPath}`, 'ip', '-o', 'link');
  assert.match(links, /^1: lo: <LOOPBACK,UP,LOWER_UP>/);
  assert.equal(links.trim().split('\n').length, 1);
  for (let times = 0; times < 2; times++) await host.calls.removeNamespaces(userPath, networkPath);
  assert.deepEqual([existsSync(userPath), existsSync(networkPath), await host.mounts()], [false, false, []]);
});

test('a user namespace has limits of its own for what counts against the whole host', async () => {
  await using host = await makeTestHost();
  const [userPath, networkPath] = [join(host.folder, 'user'), join(host.folder, 'net')];
  await host.calls.createNamespaces({ userPath, networkPath, idBase: ID_BASE, link: null });
  const read = ['cat', '/proc/sys/user/max_inotify_instances', '/proc/sys/user/max_inotify_watches'];
  assert.equal(await host.run('nsenter', `--user=${userPath}`, ...read), '128\n65536\n');
  await host.calls.removeNamespaces(userPath, networkPath);
});

test('namespaces that cannot be made leave no file, no mount and no interface', async () => {
  await using host = await makeTestHost();
  const at = (name: string) => join(host.folder, name);
  const hostInterface = uniqueInterface();
  const link = { hostInterface, address: '10.213.7.3', gateway: GATEWAY, mtu: 1500, mac: MAC };
  await writeFile(at('taken'), '');
  const request = { userPath: at('user'), networkPath: at('taken'), idBase: ID_BASE, link };
  await assert.rejects(host.calls.createNamespaces(request), failsWith('EEXIST'));
  assert.deepEqual([existsSync(at('user')), existsSync(at('taken')), await host.mounts()], [false, true, []]);
  assert.ok(!(await interfaces()).includes(hostInterface));

  await assert.rejects(
    host.calls.createNamespaces({
      ...request,
      networkPath: at('net'),
      link: { ...link, hostInterface: 'lo' },
    }),
    failsWith('EEXIST'),
  );
  assert.ok((await interfaces()).includes('lo'), 'an interface that was there before is not ours to remove');
  for (const idBase of [0, 1000, 65_535, 2 ** 32 - 1]) {
    await assert.rejects(host.calls.createNamespaces({ ...request, idBase }), failsWith('ERANGE'));
  }
  for (const name of ['', 'a/b', 'x'.repeat(16), 'tab\tname', '..']) {
    const unusable = { ...request, link: { ...link, hostInterface: name } };
    await assert.rejects(host.calls.createNamespaces(unusable), failsWith('EINVAL'));
  }
  for (const mac of [
    '',
    '02:00:5e:10:00',
    '02:00:5e:10:00:0g',
    '01:00:5e:10:00:07',
    '00:00:00:00:00:00',
    `${MAC}:08`,
  ]) {
    const unusable = { ...request, link: { ...link, mac } };
    await assert.rejects(host.calls.createNamespaces(unusable), failsWith('EINVAL'));
  }
  assert.deepEqual(await host.mounts(), []);
});

test('paths that are relative, empty or lead through dots are refused', async () => {
  await using host = await makeTestHost();
  for (const path of ['', 'relative', '/', '//', '/tmp/../etc', '/tmp/.', '/tmp/', '/tmp//x']) {
    await assert.rejects(host.calls.unmount(path), failsWith('EINVAL'));
    await assert.rejects(host.calls.removeNamespaces(path, join(host.folder, 'x')), failsWith('EINVAL'));
  }
  await assert.rejects(host.calls.unmount(`/${'x'.repeat(5000)}`), failsWith('ENAMETOOLONG'));
});

test('a name with tabs, newlines, percent signs and letters of any script is carried exactly', async () => {
  await using host = await makeTestHost();
  const from = join(host.folder, 'from');
  const to = join(host.folder, 'to\t100%\nd\u00e9j\u00e0 \u2603 %41');
  await writeFile(from, 'content');
  await host.calls.copySparse(from, to);
  assert.equal(await readFile(to, 'utf8'), 'content');
});

test('a sparse copy has the same bytes and the same holes, and never replaces a file', async () => {
  await using host = await makeTestHost();
  const [from, to] = [join(host.folder, 'from'), join(host.folder, 'to')];
  await writeFile(from, '');
  await truncate(from, 2 ** 30);
  const file = await open(from, 'r+');
  await file.write('at the start', 0);
  await file.write('in the middle', 500_000_001);
  await file.close();
  await host.calls.copySparse(from, to);
  const copy = await open(to);
  const middle = await copy.read(Buffer.alloc(13), 0, 13, 500_000_001);
  await copy.close();
  assert.equal(middle.buffer.toString(), 'in the middle');
  assert.equal((await stat(to)).size, 2 ** 30);
  assert.ok((await stat(to)).blocks * 512 < 2 ** 20, 'the copy is dense');
  await assert.rejects(host.calls.copySparse(from, to), failsWith('EEXIST'));
  await assert.rejects(host.calls.copySparse(join(host.folder, 'missing'), to), failsWith('ENOENT'));
  await assert.rejects(host.calls.copySparse('/dev/zero', join(host.folder, 'endless')), failsWith('EINVAL'));
  assert.ok(!existsSync(join(host.folder, 'endless')));
});

test('a helper that is killed fails the calls under way, loses nothing else and is replaced', async () => {
  // On a busy machine the helpers may be done before they are killed.
  for (let attempt = 1; attempt <= 20; attempt++) if ((await killHelpersAtWork()) > 0) return;
  assert.fail('the helpers were always killed too late to matter');
});

/** Tells how many calls have failed for it. */
async function killHelpersAtWork(): Promise<number> {
  await using host = await makeTestHost();
  const paths = Array.from({ length: 40 }, (_, index) => join(host.folder, String(index)));
  const names = paths.map(uniqueInterface);
  const creating = paths.map((path, index) => {
    const link = {
      hostInterface: names[index] ?? '',
      address: `10.213.8.${index}`,
      gateway: GATEWAY,
      mtu: 1500,
      mac: MAC,
    };
    return host.calls.createNamespaces({
      userPath: `${path}u`,
      networkPath: `${path}n`,
      idBase: ID_BASE,
      link,
    });
  });
  await creating[3];
  for (const pid of host.calls.pids) process.kill(pid, 'SIGKILL');
  const outcomes = await Promise.allSettled(creating);
  const failures = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []));
  for (const failure of failures) assert.ok(failsWith('ECHILD')(failure), String(failure));

  // Removal is repeated by the client when the helper dies under it.
  const removing = paths.map((path) => host.calls.removeNamespaces(`${path}u`, `${path}n`));
  for (const pid of host.calls.pids) process.kill(pid, 'SIGKILL');
  await Promise.all(removing);
  await Promise.all(names.map((name) => host.calls.deleteLink(name)));
  assert.deepEqual(await host.mounts(), []);
  assert.deepEqual(names.filter(existsAsInterface(await interfaces())), []);
  return failures.length;
}

const existsAsInterface = (existing: readonly string[]) => (name: string) => existing.includes(name);

test('a helper that does not answer is ended at the deadline, one that is missing is reported', async () => {
  await using host = await makeTestHost();
  const silent = join(host.folder, 'silent');
  await writeFile(silent, '#!/bin/sh\nexec sleep 60\n', { mode: 0o755 });
  const hanging = new SvcHostCalls({ binary: silent, processes: 1, callTimeoutMs: 200 });
  await assert.rejects(hanging.deleteLink('nowhere'), failsWith('ETIMEDOUT'));
  assert.deepEqual(hanging.pids, []);
  await hanging.close();
  const missing = new SvcHostCalls({ binary: join(host.folder, 'missing') });
  await assert.rejects(missing.unmount(host.folder), /npm run build/);
  await missing.close();
});

test('a helper that hangs is replaced, and what may be repeated is', async () => {
  await using host = await makeTestHost();
  const calls = new SvcHostCalls({ processes: 1 });
  await calls.unmount(host.folder);
  const [frozen = 0] = calls.pids;
  process.kill(frozen, 'SIGSTOP');
  await calls.unmount(host.folder);
  assert.notEqual(calls.pids[0], frozen);
  await calls.close();
});

test('a helper that sleeps through a call is replaced long before the deadline', async () => {
  await using host = await makeTestHost();
  const sleepsOnce = join(host.folder, 'sleeps-once');
  const mark = join(host.folder, 'has-slept');
  const script = `#!/bin/sh\n[ -e ${mark} ] && exec ${BUILT_SVC_HOST}\n: > ${mark}\nexec sleep 1000\n`;
  await writeFile(sleepsOnce, script, { mode: 0o755 });
  const calls = new SvcHostCalls({ binary: sleepsOnce, processes: 1, callTimeoutMs: 600_000, lookMs: 50 });
  await calls.deleteLink('nowhere');
  await calls.close();
});

test('close lets calls under way finish, and none is taken after it', async () => {
  await using host = await makeTestHost();
  const calls = new SvcHostCalls();
  const from = join(host.folder, 'from');
  await writeFile(from, 'content');
  const copying = Array.from({ length: 20 }, (_, index) =>
    calls.copySparse(from, join(host.folder, `to${index}`)),
  );
  await calls.close();
  await Promise.all(copying);
  await assert.rejects(calls.unmount(host.folder), failsWith('ESHUTDOWN'));
});
