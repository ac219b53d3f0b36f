import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';
import {
  outcomeOf,
  spawnConfined,
  type ConfinedCommand,
} from '../../packages/engine/src/images/confined-command.ts';

const run = promisify(execFile);

/**
 * What a program could do that reads images and that hostile bytes have taken over: one of the attacker's runs in its place, with the
 * rights that each of them has.
 */
const PLACES: readonly (readonly [string, Pick<ConfinedCommand, 'ids' | 'capabilities'>])[] = [
  [
    'tar that unpacks a layer',
    { ids: 'own', capabilities: ['CAP_CHOWN', 'CAP_DAC_OVERRIDE', 'CAP_FOWNER', 'CAP_FSETID'] },
  ],
  ['skopeo, of zstd or of what reads headers', { ids: 'own', capabilities: [] }],
  ['tar that reads a folder', { ids: 'any', capabilities: ['CAP_DAC_READ_SEARCH'] }],
  ['qemu-img', { ids: 'any', capabilities: [] }],
];

/** What it may do to files of its own, or finds nothing to do it to. */
const HARMLESS: Readonly<Record<string, string>> = {
  tiocsti: 'EINVAL',
  open_memory_of_init: 'EACCES',
  write_program_of_init: 'EACCES',
  write_init: 'ENOENT',
  truncate_init: 'ENOENT',
};

let base: string;
before(async () => {
  base = await mkdtemp(join(tmpdir(), 'svc-confined-'));
  const source = join(import.meta.dirname, '../engine/probe.c');
  await run('gcc', ['-static', '-O1', '-o', join(base, 'probe'), source]);
});
after(() => rm(base, { recursive: true, force: true }));

/** Runs a command in the place of the program, with a folder that it may write to. */
async function attack(
  place: Pick<ConfinedCommand, 'ids' | 'capabilities'>,
  ...command: [string, ...string[]]
) {
  const folder = await mkdtemp(join(base, 'folder-'));
  await run('cp', [join(base, 'probe'), folder]);
  const folders = [{ host: folder, inside: '/place', writable: true }];
  const child = spawnConfined({
    ...place,
    command,
    programs: [],
    folders,
    workdir: '/place',
    network: 'none',
    environment: {},
  });
  let stdout = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  const { code, stderr } = await outcomeOf(child, AbortSignal.timeout(60_000));
  return { code, stdout, stderr, folder };
}

for (const [name, place] of PLACES) {
  suite(`in the place of ${name}`, () => {
    test('the kernel takes nothing but work on files from it', async () => {
      const { stdout } = await attack(place, '/place/probe', 'calls');
      const tried = stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as { readonly name: string; readonly result: string });
      assert.ok(tried.length > 50, 'the probe has tried them');
      const refusals = ({ name: call }: { readonly name: string }) => [
        'EPERM',
        'ENOSYS',
        ...(HARMLESS[call] === undefined ? [] : [HARMLESS[call]]),
      ];
      assert.deepEqual(
        tried.filter((call) => !refusals(call).includes(call.result)),
        [],
      );
    });

    test('a confined program has no capability, group or descriptor of the host', async () => {
      const status = (await attack(place, 'cat', '/proc/self/status')).stdout;
      const field = (key: string) => new RegExp(`^${key}:[ \\t]+(.*)$`, 'm').exec(status)?.[1] ?? '';
      assert.equal(field('Seccomp'), '2');
      assert.equal(field('NoNewPrivs'), '1');
      assert.equal(field('Groups').trim(), '');
      const mayHave = place.capabilities.length;
      for (const set of ['CapEff', 'CapPrm', 'CapBnd']) {
        const bits = BigInt(`0x${field(set)}`)
          .toString(2)
          .replaceAll('0', '').length;
        assert.equal(bits, mayHave, set);
      }
      assert.match(field('CapInh'), /^0+$/);
      assert.equal((await attack(place, 'cat', '/proc/self/oom_score_adj')).stdout, '1000\n');
      assert.equal((await attack(place, 'ls', '/proc/self/fd')).stdout, '0\n1\n2\n3\n');
    });

    test('a confined program has a user namespace of its own, where its capabilities end', async () => {
      const { stdout } = await attack(place, 'readlink', '/proc/self/ns/user', '/proc/self/ns/net');
      const ours = await run('readlink', ['/proc/self/ns/user', '/proc/self/ns/net']);
      for (const namespace of ours.stdout.trim().split('\n')) assert.ok(!stdout.includes(namespace), stdout);
      const map = (await attack(place, 'cat', '/proc/self/uid_map')).stdout.trim().split(/\s+/);
      const own = ['0', String(0x1000_0000 - 6 * 65_536), '65536'];
      assert.deepEqual(map, place.ids === 'own' ? own : ['0', '2147483648', '2147483646']);
    });

    test('a confined program sees public programs of the host and its folder, and no other file', async () => {
      const { stdout } = await attack(place, 'ls', '-A', '/');
      const seen = stdout.trim().split('\n').toSorted();
      assert.deepEqual(seen, ['.svc-host', 'bin', 'dev', 'lib', 'lib64', 'place', 'proc', 'usr']);
      const outside = await attack(place, 'ls', '/place/..', '/proc/1/root');
      assert.doesNotMatch(outside.stdout, /etc|home|root$|var/m);
      for (const path of [
        '/usr/bin/true',
        '/.svc-host',
        '/proc/sys/kernel/core_pattern',
        '/proc/sysrq-trigger',
      ]) {
        // Opens it and writes nothing: should it work, the host is none the worse for it.
        const { code } = await attack(place, 'dd', 'if=/dev/null', `of=${path}`, 'conv=notrunc,nocreat');
        assert.notEqual(code, 0, `${path} could be written`);
      }
    });
  });
}

test('a folder with files of any owner is read without rights on the host, on every file system', async (t) => {
  const folderOf = (name: string) => mkdtemp(join(base, name));
  const [lower, lowest, stacked] = [await folderOf('a-'), await folderOf('b-'), await folderOf('c-')];
  const owners = [0, 1000, 3_000_000];
  for (const owner of owners) {
    await writeFile(join(lower, `${owner}`), `of ${owner}`, { mode: 0o600 });
    await chown(join(lower, `${owner}`), owner, owner);
  }
  // One that cannot map ids.
  await run('mount', ['-t', 'overlay', 'overlay', '-o', `lowerdir=${lower}:${lowest}`, stacked]);
  t.after(() => run('umount', [stacked]));
  const names = owners.map(String);
  for (const [host, map] of [
    [lower, ['0', '2147483648', '2147483646']],
    [stacked, ['0', '0', '4294967295']],
  ] as const) {
    const child = spawnConfined({
      command: ['cat', ...names, '/proc/self/uid_map'],
      programs: [],
      folders: [{ host, inside: '/rootfs', writable: false }],
      workdir: '/rootfs',
      capabilities: ['CAP_DAC_READ_SEARCH'],
      ids: 'any',
      network: 'none',
      environment: {},
    });
    let stdout = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    const { stderr } = await outcomeOf(child, AbortSignal.timeout(60_000));
    assert.equal(stderr, '');
    const read = names.map((name) => `of ${name}`).join('');
    assert.ok(stdout.startsWith(read), stdout);
    assert.deepEqual(stdout.slice(read.length).trim().split(/\s+/), map);
  }
});

test('files that tar makes belong to the ids of the archive, and to no other user while it runs', async () => {
  const archive = join(base, 'owners.tar');
  const source = join(base, 'source');
  await mkdir(source);
  await writeFile(join(source, 'file'), 'x');
  await chmod(join(source, 'file'), 0o4640);
  await run('tar', ['-cf', archive, '-C', source, '--owner=7', '--group=8', '--numeric-owner', 'file']);
  const target = await mkdtemp(join(base, 'target-'));
  const child = spawnConfined({
    command: ['tar', '--extract', '--file=-', '--same-owner', '--numeric-owner', '--preserve-permissions'],
    programs: [],
    folders: [{ host: target, inside: '/layer', writable: true }],
    workdir: '/layer',
    capabilities: ['CAP_CHOWN', 'CAP_DAC_OVERRIDE', 'CAP_FOWNER', 'CAP_FSETID'],
    ids: 'own',
    network: 'none',
    environment: {},
  });
  child.stdin.end(await readFile(archive));
  assert.equal((await outcomeOf(child, AbortSignal.timeout(60_000))).code, 0);
  const { uid, gid, mode } = await stat(join(target, 'file'));
  assert.deepEqual([uid, gid, mode & 0o7777], [7, 8, 0o4640]);
  assert.deepEqual(await readdir(target), ['file']);
});
