import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Guard, type GuardOptions } from './guard.ts';

const guard = (options: Partial<GuardOptions> = {}) =>
  new Guard({ host: '127.0.0.1', allowedHosts: [], corsOrigins: [], ...options });
const admits = (options: Partial<GuardOptions>, host: string | undefined, origin?: string) =>
  assert.doesNotThrow(() => guard(options).check({ host, origin }), `${host} ${origin}`);
const refuses = (options: Partial<GuardOptions>, host: string | undefined, origin?: string) =>
  assert.throws(() => guard(options).check({ host, origin }), { code: 'forbidden' }, `${host} ${origin}`);

test('loopback names and addresses are always ours', () => {
  for (const host of [
    'localhost',
    'localhost:5555',
    'LOCALHOST:1',
    '127.0.0.1:5555',
    '127.1.2.3',
    '[::1]:5555',
  ]) {
    admits({}, host);
  }
});

test('a foreign host name that resolves to this server is refused', () => {
  for (const host of [
    'evil.example',
    'evil.example:5555',
    '127.0.0.1.evil.example',
    'localhost.evil',
    '',
    undefined,
  ]) {
    refuses({}, host);
  }
  refuses({}, '192.168.1.1:5555');
  refuses({}, 'a@localhost');
  refuses({}, 'localhost:5555:1');
});

test('the bound name and --allowed-host are ours', () => {
  admits({ host: 'box.lan' }, 'box.lan:5555');
  admits({ allowedHosts: ['svc.example'] }, 'SVC.example.');
  refuses({ allowedHosts: ['svc.example'] }, 'other.example');
});

test('a server on all interfaces takes any address and still no foreign name', () => {
  admits({ host: '0.0.0.0' }, '192.168.1.1:5555');
  admits({ host: '::' }, '[2001:db8::1]:5555');
  refuses({ host: '0.0.0.0' }, 'evil.example:5555');
});

test('a page may call us only from our own origin or one that was allowed', () => {
  admits({}, 'localhost:5555', 'http://localhost:5555');
  admits({}, 'localhost:5555', 'https://localhost:5555');
  admits({ corsOrigins: ['https://app.example'] }, 'localhost:5555', 'https://app.example');
  for (const origin of ['http://evil.example', 'http://localhost:3000', 'null', '', 'https://app.example']) {
    refuses({}, 'localhost:5555', origin);
  }
});

test('subresources of foreign pages are refused, navigations and requests of programs are not', () => {
  const check = (headers: Readonly<Record<string, string>>) => () =>
    guard({ corsOrigins: ['https://app.example'] }).check({ host: 'localhost:5555', ...headers });
  const from = (site: string, mode: string, target: string) => ({
    'sec-fetch-site': site,
    'sec-fetch-mode': mode,
    'sec-fetch-dest': target,
  });
  for (const site of ['cross-site', 'same-site']) {
    assert.doesNotThrow(check(from(site, 'navigate', 'document')), 'a link');
    assert.doesNotThrow(check({ ...from(site, 'cors', 'empty'), origin: 'https://app.example' }));
    for (const target of ['image', 'script', 'style', 'object', 'empty'])
      assert.throws(check(from(site, 'no-cors', target)), { code: 'forbidden' }, `${site} ${target}`);
    assert.throws(check(from(site, 'navigate', 'iframe')), { code: 'forbidden' });
  }
  for (const site of ['same-origin', 'none'])
    assert.doesNotThrow(check(from(site, 'no-cors', 'image')), site);
});
