import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readConfig } from './config.ts';
import { readPreviewPlace } from './gateway-options.ts';
import { previewUrl, readPreviewHost, type PreviewPlace } from './handlers/previews/preview-place.ts';

test('without options there is no SSH and no address to publish on but loopback', () => {
  const config = readConfig([], {});
  assert.equal(config.ssh, null);
  assert.deepEqual(config.restSettings.publishAddresses, []);
});

test('SSH has a port, the address of the server and a limit on silence', () => {
  const { ssh } = readConfig(['--host', '::1', '--ssh-port', '5522'], {});
  assert.partialDeepStrictEqual(ssh, { host: '::1', port: 5522, inactivityMs: 600_000 });
  assert.equal(readConfig(['--ssh-port', '1', '--ssh-idle-timeout', '0'], {}).ssh?.inactivityMs, 0);
  for (const args of [
    ['--ssh-port', '70000'],
    ['--ssh-port', 'x'],
    ['--ssh-port', '1', '--ssh-idle-timeout', '-1'],
  ]) {
    assert.throws(() => readConfig(args, {}), /--ssh-/, args.join(' '));
  }
});

test('a domain of previews is a name, or a URL that browsers use', () => {
  const read = (text: string) => readConfig(['--preview-domain', text], {}).options.previews;
  assert.deepEqual(read('p.example.com'), { domain: 'p.example.com', scheme: 'http', port: null });
  assert.deepEqual(read('https://P.example.com'), { domain: 'p.example.com', scheme: 'https', port: 443 });
  assert.deepEqual(read('http://p.test:8080'), { domain: 'p.test', scheme: 'http', port: 8080 });
  for (const text of ['', '127.0.0.1', 'a..b', 'ftp://x', 'https://x/path', 'a b', 'u@x', '-x']) {
    assert.throws(() => read(text), /--preview-domain/, text);
  }
  // Otherwise pages of sandboxes could set cookies for the API.
  const above = ['--preview-domain', 'example.com', '--allowed-host', 'api.example.com'];
  assert.throws(() => readConfig(above, {}), /must not be above/);
  assert.throws(() => readConfig(['--publish-address', 'localhost'], {}), /--publish-address/);
});

test("ports of E2B's clients are public, unless the operator asks for tokens", () => {
  const read = (...args: string[]) => readConfig(args, {}).options.areE2bPortsPublic;
  assert.deepEqual(
    [read(), read('--e2b-ports', 'public'), read('--e2b-ports', 'token')],
    [true, true, false],
  );
  assert.throws(() => read('--e2b-ports', 'none'), /--e2b-ports must be one of public, token/);
});

test('a server that only its machine reaches shows previews below localhost, unless told not to', () => {
  const read = (host: string, values: Parameters<typeof readPreviewPlace>[0] = {}) =>
    readPreviewPlace(values, host, []);
  const local = { domain: 'localhost', scheme: 'http', port: null };
  for (const host of ['127.0.0.1', 'localhost', '::1']) assert.deepEqual(read(host), local, host);
  assert.equal(read('0.0.0.0'), null);
  assert.equal(read('192.0.2.1'), null);
  assert.equal(read('127.0.0.1', { 'allowed-host': ['api.example.com'] }), null, 'a proxy brings others');
  assert.equal(read('127.0.0.1', { 'preview-domain': 'off' }), null);
});

test('hosts of previews are read strictly, and written as they are read', () => {
  const place: PreviewPlace = { domain: 'p.test', scheme: 'http', port: null };
  assert.deepEqual(readPreviewHost(place, '3000-calm-fox.p.test'), { port: 3000, slug: 'calm-fox' });
  assert.deepEqual(readPreviewHost(place, '3000-Calm-Fox.P.test:5555'), { port: 3000, slug: 'calm-fox' });
  for (const host of [
    undefined,
    '',
    'p.test',
    '3000-a.p.test.evil',
    '3000-a.b.p.test',
    '03000-a.p.test',
    '65536-a.p.test',
    '3000-.p.test',
    'a-3000.p.test',
    '3000-a.xp.test',
    '3000-a.p.test:x',
  ]) {
    assert.equal(readPreviewHost(place, host), undefined, host);
  }
  const one = { port: 1, slug: 'a' };
  assert.equal(previewUrl({ ...place, port: () => 5555 }, one), 'http://1-a.p.test:5555/');
  assert.equal(previewUrl({ ...place, scheme: 'https', port: () => 443 }, one), 'https://1-a.p.test/');
});
