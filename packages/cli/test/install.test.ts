import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, rmdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { CommandLine } from './command-line.ts';

const CHECKOUT = resolve(import.meta.dirname, '../../..');
const exec = promisify(execFile);

test('install puts svc on PATH with completion that works, twice too, and takes it away again', async (t) => {
  const svc = await CommandLine.withoutEngine();
  t.after(() => svc.close());
  const prefix = await mkdtemp(join(tmpdir(), 'svc-prefix-'));
  t.after(() => rm(prefix, { recursive: true, force: true }));
  await svc.succeed(['install', '--prefix', prefix]);
  await svc.succeed(['install', '--prefix', prefix]);
  const env = { PATH: `${join(prefix, 'bin')}:${process.env['PATH']}`, HOME: prefix };
  assert.match((await exec('svc', ['--version'], { env })).stdout, /^\d+\.\d+\.\d+\n$/);
  const completed = await exec(
    'bash',
    [
      '-c',
      `source ${prefix}/share/bash-completion/completions/svc; COMP_WORDS=(svc ex); COMP_CWORD=1; _svc; echo "\${COMPREPLY[@]}"`,
    ],
    { env },
  );
  assert.equal(completed.stdout, 'exec\n');
  assert.match(await readFile(join(prefix, 'share/zsh/site-functions/_svc'), 'utf8'), /^#compdef svc/);
  await svc.succeed(['install', '--prefix', prefix, '--remove']);
  assert.deepEqual(await readdir(join(prefix, 'bin')), []);
  assert.deepEqual(await readdir(join(prefix, 'share/fish/vendor_completions.d')), []);
});

test('install from a checkout that other users cannot read prints a note', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-install-'));
  const [closed, prefix] = [join(folder, 'closed'), join(folder, 'prefix')];
  const checkout = join(closed, 'checkout');
  await mkdir(checkout, { recursive: true });
  await exec('mount', ['--bind', CHECKOUT, checkout]);
  t.after(async () => {
    await exec('umount', ['--lazy', checkout]);
    // SAFETY: not recursive, so that nothing of the checkout goes should it still be mounted.
    await rmdir(checkout);
    await rmdir(closed);
    await rm(prefix, { recursive: true, force: true });
    await rmdir(folder);
  });
  await mkdir(prefix);
  const note = /other users find svc but cannot run it, because they may not read/;
  const install = async () => (await exec(join(checkout, 'svc'), ['install', '--prefix', prefix])).stderr;

  await chmod(folder, 0o755);
  await chmod(closed, 0o700);
  assert.match(await install(), note);
  // Users who cannot find it need no note.
  await chmod(prefix, 0o700);
  assert.doesNotMatch(await install(), note);
});

test('install leaves another program of that name alone', async (t) => {
  const svc = await CommandLine.withoutEngine();
  t.after(() => svc.close());
  const prefix = await mkdtemp(join(tmpdir(), 'svc-prefix-'));
  t.after(() => rm(prefix, { recursive: true, force: true }));
  await mkdir(join(prefix, 'bin'));
  await writeFile(resolve(prefix, 'bin/svc'), 'theirs');
  for (const words of [[], ['--remove']]) {
    const { code, stderr } = await svc.run(['install', '--prefix', prefix, ...words]);
    assert.deepEqual([code, /is there and is not ours/.test(stderr)], [2, true], stderr);
  }
  assert.equal(await readFile(resolve(prefix, 'bin/svc'), 'utf8'), 'theirs');
});

test('a unit for systemd is sound, lets sandboxes outlive the server, and goes with the rest', async (t) => {
  const svc = await CommandLine.withoutEngine();
  t.after(() => svc.close());
  const prefix = await mkdtemp(join(tmpdir(), 'svc prefix-'));
  t.after(() => rm(prefix, { recursive: true, force: true }));
  const unit = join(prefix, 'lib/systemd/system/svc.service');
  const { code, stderr } = await svc.run(['install', '--prefix', prefix, '--systemd']);
  assert.deepEqual(
    [code, stderr.endsWith('next: systemctl daemon-reload && systemctl enable --now svc\n')],
    [0, true],
  );
  const text = await readFile(unit, 'utf8');
  assert.ok(text.includes(`ExecStart="${prefix}/bin/svc" --path ${svc.folder} server start`), text);
  for (const line of [
    'Type=notify',
    'Restart=always',
    'StartLimitIntervalSec=0',
    'KillMode=process',
    'WatchdogSec=60',
    'WatchdogSignal=SIGKILL',
    'Delegate=yes',
    'CPUWeight=1000',
  ])
    assert.ok(text.includes(`\n${line}\n`), line);
  // Of what it finds wrong with other units of this machine it says so too; of ours there must be nothing.
  const verified = await exec('systemd-analyze', ['verify', '--man=no', '--recursive-errors=no', unit]);
  assert.doesNotMatch(verified.stdout + verified.stderr, /svc\.service/);
  await svc.succeed(['install', '--prefix', prefix, '--remove']);
  await assert.rejects(readFile(unit), /ENOENT/);

  await writeFile(unit, '[Service]\nExecStart=/bin/true\n');
  const theirs = await svc.run(['install', '--prefix', prefix, '--systemd']);
  assert.deepEqual([theirs.code, /is not ours/.test(theirs.stderr)], [2, true], theirs.stderr);
});
