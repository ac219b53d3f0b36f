import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readConfig } from './config.ts';

test('without options the engine uses /var/lib/svc and chooses the strongest class', () => {
  const config = readConfig([], {});
  assert.equal(config.dataFolder, '/var/lib/svc');
  assert.equal(config.socketPath, '/var/lib/svc/engine.sock');
  assert.equal(config.isolation, 'auto');
  assert.deepEqual(config.warm, []);
  assert.equal(config.warmAdaptive, 3);
});

test('an option wins over the environment', () => {
  assert.equal(readConfig(['--path', '/a'], { SVC_HOME: '/b' }).dataFolder, '/a');
  assert.equal(readConfig([], { SVC_HOME: '/b' }).dataFolder, '/b');
  const env = { SVC_WARM_ADAPTIVE: '1' };
  assert.equal(readConfig([], env).warmAdaptive, 1);
  assert.equal(readConfig(['--warm-adaptive', '0'], env).warmAdaptive, 0);
});

test('tuning is on unless it is turned off by name', () => {
  assert.equal(readConfig([], {}).isTuned, true);
  assert.equal(readConfig(['--tuning', 'off'], {}).isTuned, false);
  assert.throws(() => readConfig(['--tuning', 'less'], {}), /--tuning/);
});

test('engines on different folders have different names on the host', () => {
  assert.notEqual(readConfig(['--path', '/a'], {}).runFolder, readConfig(['--path', '/b'], {}).runFolder);
});

test('warm sandboxes are given as image, count and class', () => {
  assert.deepEqual(readConfig(['--warm', 'python=2', '--warm', 'node=1@gvisor'], {}).warm, [
    { reference: 'python', count: 2, isolation: undefined },
    { reference: 'node', count: 1, isolation: 'gvisor' },
  ]);
});

test('every bad value is reported, all together', () => {
  const args = [
    '--isolation',
    'vm',
    '--log-level',
    'loud',
    '--warm',
    'x',
    '--bind-root',
    'relative',
    '--prepared-slots',
    '-1',
    '--socket-owner',
    'me',
  ];
  assert.throws(
    () =>
      readConfig(
        args
          .map((arg) => (arg === '-1' ? '--prepared-slots=-1' : arg))
          .filter((arg) => arg !== '--prepared-slots'),
        {},
      ),
    (error: Error) => {
      for (const name of ['isolation', 'log-level', 'warm', 'bind-root', 'prepared-slots', 'socket-owner']) {
        assert.match(error.message, new RegExp(`--${name}`));
      }
      return true;
    },
  );
});

test('disk images have folders of their own, which no sandbox can mount and write to', () => {
  const both = (image: string, bind: string) =>
    readConfig(['--disk-image-root', image, '--bind-root', bind], {}).diskImageRoots;
  assert.deepEqual(both('/srv/images', '/srv/shared'), ['/srv/images']);
  for (const [image, bind] of [
    ['/srv/shared', '/srv/shared'],
    ['/srv/shared/images', '/srv/shared'],
    ['/srv', '/srv/shared'],
  ] as const) {
    assert.throws(() => both(image, bind), /--disk-image-root .* overlaps --bind-root/);
  }
});

test('a TCP port needs all three files of its TLS, and is an address with a port', () => {
  const files = ['--tls-cert', '/n.crt', '--tls-key', '/n.key', '--tls-ca', '/ca.crt'];
  assert.equal(readConfig([], {}).listenOn, null);
  const { listenOn, tlsFiles } = readConfig(['--listen', '192.0.2.7:7443', ...files], {});
  assert.deepEqual(listenOn, { host: '192.0.2.7', port: 7443 });
  assert.deepEqual(tlsFiles, { cert: '/n.crt', key: '/n.key', ca: '/ca.crt' });
  const six = readConfig(['--listen', '[2001:db8::7]:7443', ...files], {}).listenOn;
  assert.deepEqual(six, { host: '2001:db8::7', port: 7443 });
  for (const place of ['7443', 'host', 'host:70000', '[host]:1', '2001:db8::7:7443'])
    assert.throws(() => readConfig(['--listen', place, ...files], {}), /--listen must be HOST:PORT/, place);
  for (const missing of [0, 2, 4])
    assert.throws(
      () => readConfig(['--listen', 'a:1', ...files.toSpliced(missing, 2)], {}),
      /--listen needs --tls-cert, --tls-key and --tls-ca; give all three/,
    );
  assert.throws(() => readConfig(files, {}), /--tls-cert, --tls-key and --tls-ca belong to --listen/);
});
