import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readConfig } from './config.ts';
import { EXIT } from './host/exit-codes.ts';
import { StartError } from './host/start-error.ts';

test('without options the server listens on loopback port 5555 and asks for keys', () => {
  const config = readConfig([], {});
  assert.equal(config.options.host, '127.0.0.1');
  assert.equal(config.options.port, 5555);
  assert.equal(config.isDev, false);
  assert.equal(config.dataFolder, '/var/lib/svc');
  assert.equal(config.databaseUrl, null);
  assert.equal(config.options.limits.maxBodyBytes, 2 * 1024 * 1024);
});

test('an option wins over the environment', () => {
  assert.equal(readConfig([], { SVC_HOME: '/a' }).dataFolder, '/a');
  assert.equal(readConfig(['--path', '/b'], { SVC_HOME: '/a' }).dataFolder, '/b');
  assert.equal(readConfig([], { SVC_DATABASE_URL: 'postgres://x/y' }).databaseUrl, 'postgres://x/y');
});

test('development mode beyond loopback needs to be confirmed', () => {
  for (const host of ['0.0.0.0', '192.168.1.1', 'box.lan', '::']) {
    assert.throws(() => readConfig(['--dev', '--host', host], {}), /--allow-remote-dev/, host);
    assert.equal(readConfig(['--dev', '--host', host, '--allow-remote-dev'], {}).isDev, true);
    assert.equal(readConfig(['--host', host], {}).options.host, host);
  }
  for (const host of ['127.0.0.1', 'localhost', '::1']) {
    assert.equal(readConfig(['--dev', '--host', host], {}).isDev, true);
  }
});

test('every bad value is reported, and all of them together', () => {
  const args = [
    '--port',
    '70000',
    '--log-level',
    'loud',
    '--cors-origin',
    'x',
    '--database',
    'mysql://u:secret@h/d',
  ];
  assert.throws(
    () => readConfig(args, {}),
    (error: unknown) => {
      assert.ok(error instanceof StartError);
      assert.equal(error.exitCode, EXIT.usage);
      for (const name of ['--port', '--log-level', '--cors-origin', '--database']) {
        assert.match(error.message, new RegExp(name));
      }
      assert.doesNotMatch(error.message, /secret/);
      return true;
    },
  );
  assert.throws(() => readConfig(['--no-such-option'], {}), StartError);
});

test('options of the engine are handed on as they are', () => {
  const args = ['--isolation', 'gvisor', '--bind-root', '/a', '--bind-root', '/b', '--warm', 'python=2'];
  const handedOn = '--isolation gvisor --warm python=2 --bind-root /a --bind-root /b'.split(' ');
  const handOn = (given: readonly string[]) => readConfig(['--dev', ...given], {}).engineArguments;
  assert.deepEqual(handOn(args), handedOn);
  const others = ['--disk-image-root', '/c', '--trusted-registry', 'r', '--insecure-registry', 'i'];
  const pools = ['--address-pool', '10.1.0.0/16', '--ipv6-pool', 'auto'];
  const network = ['--nameserver', '192.0.2.1', ...pools, '--max-packets', '500', '--max-bandwidth', '50'];
  assert.deepEqual(handOn([...others, ...network]), [...others, ...network]);
  const warm = ['--warm-adaptive', '0', '--tuning', 'off'];
  assert.deepEqual(handOn(warm), warm);
  const images = ['--max-image-gib', '8', '--max-unpack-ratio', '20', '--keep-images', '0'];
  assert.deepEqual(handOn(images), images);
});

test('with keys sandboxes reach public addresses and what the operator names, and with --dev everything', () => {
  const read = (...args: readonly string[]) => {
    const { engineArguments, restSettings } = readConfig(args, {});
    const { installation, organizations } = restSettings.networkCeilings;
    return { installation, organizations: Object.fromEntries(organizations), engineArguments };
  };
  const none = { organizations: {}, engineArguments: [] };
  assert.deepEqual(read('--dev'), { installation: ['all'], ...none });
  assert.deepEqual(read('--network-ceiling', 'all'), { installation: ['all'], ...none });
  const engine = (words: string) => ['--network-ceiling', words];
  assert.deepEqual(read(), {
    installation: ['public'],
    organizations: {},
    engineArguments: engine('public'),
  });
  assert.deepEqual(read('--dev', '--network-ceiling', 'none,10.8.0.0/16'), {
    installation: ['10.8.0.0/16'],
    organizations: {},
    engineArguments: engine('none,10.8.0.0/16'),
  });
  const both = ['--network-ceiling', '192.0.2.7', '--network-ceiling', 'acme=none,link-local'];
  assert.deepEqual(read(...both), {
    installation: ['public', '192.0.2.7/32'],
    organizations: { acme: ['link_local'] },
    engineArguments: engine('public,192.0.2.7/32,link_local'),
  });
  for (const [words, problem] of [
    ['10.8.0.1/16', /'10\.8\.0\.1\/16' is no part of a network ceiling; give public/],
    ['all,public', /'all' is no part/],
    ['acme=', /'' is no part/],
  ] as const)
    assert.throws(() => readConfig(['--network-ceiling', words], {}), problem, words);
  assert.throws(
    () => readConfig(['--network-ceiling', 'a=all', '--network-ceiling', 'a=all'], {}),
    /twice for a/,
  );
});

test('the file of plans is named by an absolute path, because the server works elsewhere', () => {
  assert.equal(readConfig([], {}).plansPath, null);
  assert.equal(readConfig(['--plans', '/etc/svc/plans.json'], {}).plansPath, '/etc/svc/plans.json');
  assert.throws(() => readConfig(['--plans', 'plans.json'], {}), /--plans must be an absolute path/);
});

test('a list of nodes is an absolute path, and excludes an engine of the server and its options', () => {
  const { nodesPath, isEngineExternal } = readConfig(['--nodes', '/etc/svc/nodes.json'], {});
  assert.deepEqual([nodesPath, isEngineExternal], ['/etc/svc/nodes.json', true]);
  assert.equal(readConfig([], {}).nodesPath, null);
  const refused =
    (...args: readonly string[]) =>
    () =>
      readConfig(['--nodes', '/n.json', ...args], {});
  assert.throws(refused('--engine-socket', '/x.sock'), /--nodes and --engine-socket exclude each other/);
  assert.throws(refused('--isolation', 'gvisor'), /--isolation is an option of engines; with --nodes/);
  assert.throws(() => readConfig(['--nodes', 'nodes.json'], {}), /--nodes must be an absolute path/);
});
