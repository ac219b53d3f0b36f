import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CommandLine } from './command-line.ts';

let svc: CommandLine;
before(async () => {
  // As a hardened root has it, and all that is started here inherits it: sandboxes run all the same.
  process.umask(0o077);
  svc = await CommandLine.withEngine();
});
after(() => svc.close());

test('images can be listed, inspected and removed', async () => {
  assert.match(await svc.succeed(['image', 'ls']), /tools/);
  await svc.succeed(['image', 'import', `${svc.folder}/tools-rootfs`, 'other']);
  assert.match(await svc.succeed(['image', 'inspect', 'other']), /"architecture"/);
  await svc.succeed(['image', 'rm', 'other']);
  assert.equal((await svc.run(['image', 'inspect', 'other'])).code, 1);
});

test('images survive an engine that stops and starts again', async () => {
  assert.match(await svc.succeed(['engine', 'stop']), /stopped/);
  assert.equal((await svc.run(['image', 'ls'])).code, 1);
  await svc.startEngine();
  assert.match(await svc.succeed(['engine', 'start', '--detach']), /runs already/);
  assert.match(await svc.succeed(['engine', 'status']), /0 sandboxes/);
  assert.match(await svc.succeed(['image', 'ls']), /tools/);
});

test('svc pool ls lists warm sandboxes', async () => {
  assert.deepEqual(JSON.parse(await svc.succeed(['pool', 'ls', '-o', 'json'])), {
    max: 0,
    waiting: [],
    handedOut: 0,
    missed: 0,
    givenBack: 0,
  });
  await svc.succeed(['engine', 'stop']);
  await svc.startEngine(['--warm-adaptive', '2']);
  const { stderr } = await svc.run(['pool', 'ls']);
  assert.match(stderr, /0 of 2 wait; 0 handed out, 0 missed, 0 given back/);
});

test('a server on another data folder is found there, on any port', async () => {
  await svc.succeed(['engine', 'stop']);
  const place = [
    '--port',
    '0',
    '--run-as',
    '64555:64555',
    '--isolation',
    'container',
    '--address-pool',
    svc.pool,
  ];
  try {
    assert.match(
      await svc.succeed(['server', 'start', '--dev', '--detach', ...place]),
      /server started on http/,
    );
    assert.equal(await svc.succeed(['run', 'tools', 'echo', 'found']), 'found\n');
    assert.equal(await svc.succeed(['ps', '-aq']), '');
  } finally {
    await svc.succeed(['server', 'stop']);
  }
  const gone = await svc.run(['ps']);
  assert.equal(gone.code, 1);
  assert.match(gone.stderr, /svc server start --dev/);
});
