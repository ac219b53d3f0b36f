import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, rmdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { test, type TestContext } from 'node:test';
import { BUILT_SVC_HOST } from '../host/svc-host-calls.ts';
import { readCgroupLayout, treeOf } from './cgroup-layout.ts';
import type { CgroupLayout } from './cgroup-layout.ts';
import { outweighSandboxes, takeOwnShare } from './own-share.ts';

/** A folder that stands for a tree. */
function layoutOf(
  t: TestContext,
  version: 1 | 2,
): { readonly layout: CgroupLayout; readonly folder: string } {
  const folder = mkdtempSync(`${tmpdir()}/svc-own-share-`);
  t.after(() => rmSync(folder, { recursive: true }));
  mkdirSync(`${folder}/svc`);
  return { folder, layout: { version, trees: [{ mountpoint: folder, version, controllers: ['cpu'] }] } };
}

test('who is in the root of a tree of version 1 joins a cgroup with eight times the weight of one', (t) => {
  const { layout, folder } = layoutOf(t, 1);
  assert.equal(takeOwnShare(layout, '4:memory:/elsewhere\n1:cpu,cpuacct:/\n0::/\n'), true);
  const read = (file: string) => readFileSync(`${folder}/svc-own/${file}`, 'utf8');
  assert.deepEqual([read('cpu.shares'), read('cgroup.procs')], ['8192', '0']);
});

test('in version 2 the controller is turned on first', (t) => {
  const { layout, folder } = layoutOf(t, 2);
  assert.equal(takeOwnShare(layout, '0::/\n'), true);
  const read = (file: string) => readFileSync(`${folder}/${file}`, 'utf8');
  assert.deepEqual(
    [read('cgroup.subtree_control'), read('svc-own/cpu.weight'), read('svc-own/cgroup.procs')],
    ['+cpu', '800', '0'],
  );
});

test('who was put somewhere stays there, and who is there already has it', (t) => {
  const { layout, folder } = layoutOf(t, 2);
  assert.equal(takeOwnShare(layout, '0::/system.slice/svc.service\n'), false);
  assert.throws(() => readFileSync(`${folder}/svc-own/cpu.weight`), { code: 'ENOENT' });
  assert.equal(takeOwnShare(layout, '0::/svc-own\n'), true);
  assert.equal(takeOwnShare({ version: 1, trees: [] }, '0::/\n'), false);
});

for (const [version, file, lowest] of [
  [1, 'cpu.shares', 2],
  [2, 'cpu.weight', 1],
] as const) {
  test(`all sandboxes, and what works for them, weigh an eighth of the cgroup that we were put into, on version ${version}`, (t) => {
    const { layout, folder } = layoutOf(t, version);
    mkdirSync(`${folder}/system.slice`);
    const at = (path: string) => (version === 1 ? `1:cpu,cpuacct:${path}\n0::/\n` : `0::${path}\n`);
    const ofSandboxes = () => {
      const [all, work] = ['svc', 'svc-work'].map((name) =>
        Number(readFileSync(`${folder}/${name}/${file}`, 'latin1')),
      );
      assert.equal(work, all);
      return all;
    };
    for (const [ours, theirs] of [
      [1024, 128],
      [100, 12],
      [1, lowest],
    ] as const) {
      writeFileSync(`${folder}/system.slice/${file}`, `${ours}\n`);
      assert.equal(outweighSandboxes(layout, at('/system.slice/svc.service')), theirs);
      assert.equal(ofSandboxes(), theirs);
    }
    assert.equal(takeOwnShare(layout, at('/')), true);
    assert.equal(outweighSandboxes(layout, at('/')), null);
    assert.equal(outweighSandboxes(layout, at('/svc/sandbox')), null);
    assert.equal(ofSandboxes(), lowest);
    // What was left by one that ran elsewhere is set right.
    assert.equal(outweighSandboxes(layout, at('/svc-own')), version === 1 ? 1024 : 100);
    assert.equal(ofSandboxes(), version === 1 ? 1024 : 100);
  });
}

test('the kernel of this host takes it, children inherit it, and what works for one tenant leaves it', async () => {
  const layout = readCgroupLayout();
  const tree = treeOf(layout, 'cpu') ?? assert.fail('this test needs the controller cpu');
  const script = `import { outweighSandboxes, takeOwnShare } from '${import.meta.dirname}/own-share.ts';
    import { execFileSync } from 'node:child_process';
    takeOwnShare(undefined, '1:cpu:/\\n0::/\\n');
    outweighSandboxes();
    const run = (...args) => execFileSync(args[0], args.slice(1), { encoding: 'utf8' });
    console.log(JSON.stringify([
      run('cat', '/proc/self/cgroup'),
      run('${BUILT_SVC_HOST}', '--stand-back', 'cat', '/proc/self/cgroup'),
      run('${BUILT_SVC_HOST}', '--stand-back', 'nice'),
    ]));`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const chunks = await Promise.all([child.stdout.toArray(), once(child, 'close')]);
  const [own = '', work = '', nice] = JSON.parse(Buffer.concat(chunks[0] as Buffer[]).toString()) as string[];
  const line = (name: string) =>
    new RegExp(tree.version === 1 ? `:cpu[^:]*:/${name}$` : `^0::/${name}$`, 'm');
  assert.match(own, line('svc-own'));
  assert.match(work, line('svc-work'));
  assert.equal(Number(nice), 10);
});

test('what works for one tenant also leaves a cgroup that somebody else has put the engine into', (t) => {
  const tree = treeOf(readCgroupLayout(), 'cpu') ?? assert.fail('this test needs the controller cpu');
  const place = mkdtempSync(`${tree.mountpoint}/svc-test-unit-`);
  t.after(() => rmdirSync(place));
  // The one before has made the group for work.
  const script = 'echo 0 > "$0/cgroup.procs" && exec "$1" --stand-back cat /proc/self/cgroup';
  const text = execFileSync('sh', ['-c', script, place, BUILT_SVC_HOST], { encoding: 'utf8' });
  assert.match(text, /:\/svc-work$/m);
  assert.doesNotMatch(text, /svc-test-unit/);
});
