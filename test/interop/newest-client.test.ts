import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { BUSYBOX } from '../engine/start-engine.ts';
import { ReferenceClient, type Ended } from './reference-client.ts';

/** The newest client of the reference product is published for Python alone, with its command-line tool. */
const BUILD = join(import.meta.dirname, 'python/build');
const MSB = join(BUILD, 'microsandbox/_bundled/bin/msb');

interface Shown {
  // oxlint-disable-next-line typescript/no-explicit-any -- Each test names the fields that it expects.
  readonly spec: { readonly network: any };
}

let client: ReferenceClient;
before(async () => {
  client = await ReferenceClient.start();
});
after(() => client.destroy());

const msb = (...args: readonly string[]) => client.run(MSB, args);

/** What a command that must succeed has printed. */
async function done(running: Promise<Ended>): Promise<string> {
  const { code, stdout, stderr } = await running;
  assert.equal(code, 0, stderr);
  return stdout;
}

/** The network of a sandbox as the server shows it to other clients. */
async function networkOf(name: string) {
  const { MSB_API_KEY: key = '', MSB_API_URL: url = '' } = client.env;
  const headers = { authorization: `Bearer ${key}` };
  const response = await fetch(`${url}/v1/sandboxes/by-name/${name}`, { headers });
  assert.equal(response.status, 200);
  const { spec } = (await response.json()) as Shown;
  return spec.network;
}

test('every option of the network that the client sends is taken, with its effect', async () => {
  const create = async (name: string, ...options: readonly string[]) => {
    await done(msb('create', '--name', name, ...options, BUSYBOX));
    const network = await networkOf(name);
    await done(msb('rm', '--force', name));
    return network;
  };
  const bounded = await create('bounded', '--max-tcp-connections', '20', '--max-udp-connections', '3');
  assert.deepEqual([bounded.max_connections, bounded.max_udp_connections], [20, 3]);
  const closed = await create('closed', '--no-net');
  assert.deepEqual(closed.policy, { default_egress: 'deny', default_ingress: 'deny', rules: [] });
  const named = await create('named', '--net-rule', 'allow@example.com:tcp:443', '--net-strict=true');
  assert.deepEqual(named.policy.rules[0].destination, { domain: 'example.com' });
  await create('plain', '--net-strict=false', '--no-dns-rebind-protection', '--dns-query-timeout-ms', '700');
});

test('unsupported limits and missing secrets are refused by name', async () => {
  const refusal = async (...options: readonly string[]) => {
    const { code, stderr } = await msb('create', '--name', 'refused', ...options, BUSYBOX);
    assert.notEqual(code, 0);
    return stderr;
  };
  assert.match(await refusal('--max-udp-connections', '0'), /network\.max_udp_connections/);
  const withSecret = ['KEY=kept-here', MSB, 'create', '--name', 'refused'];
  const words = [...withSecret, '--secret', 'KEY@api.example.com', BUSYBOX];
  const { code, stderr } = await client.run('env', words);
  assert.notEqual(code, 0);
  assert.match(stderr, /network\.secrets\.entries\[0\]\.source: the organization has no secret KEY/);
});

test('the library makes a sandbox with a secret, which has a placeholder inside, and starts it again', async () => {
  const program = join(import.meta.dirname, 'newest-program.py');
  const words = [`PYTHONPATH=${BUILD}`, '/usr/bin/python3', program, BUSYBOX];
  const seen = JSON.parse(await done(client.run('env', words)));
  assert.deepEqual(seen, { ran: [3, '1 $MSB_KEY\n/tmp\n'], kept: 'bytes', again: [0, 'bytes'] });
  const [secret] = (await networkOf('from-python')).secrets;
  assert.deepEqual(secret, {
    env_var: 'KEY',
    placeholder: '$MSB_KEY',
    allowed_hosts: [{ type: 'exact', value: 'api.example.com' }],
    injection: {
      headers: true,
      header_fields: ['authorization'],
      basic_auth: true,
      query_params: true,
      body: false,
    },
    on_violation: null,
    passthrough_hosts: [{ type: 'wildcard', value: '*.other.example' }],
  });
});

test('commands, files and logs; lines of svc itself end', async () => {
  await done(msb('create', '--name', 'box', '-e', 'A=1', '-w', '/tmp', BUSYBOX));
  const ran = await msb('exec', 'box', '--', 'sh', '-c', 'echo $A; pwd; exit 7');
  assert.deepEqual([ran.code, ran.stdout], [7, '1\n/tmp\n']);
  await done(msb('stop', 'box'));
  const logged = await done(msb('logs', '-f', '--source', 'system', 'box'));
  assert.match(logged, /^starting\nrunning\n/);
  await done(msb('start', 'box'));
});

test('snapshots are made, listed, looked at, restored by name and removed', async () => {
  await done(msb('create', '--name', 'origin', BUSYBOX));
  await done(msb('exec', 'origin', '--', 'sh', '-c', 'echo before > /note; sync'));
  await done(msb('snapshot', 'create', 'First', '--from-sandbox', 'origin'));
  assert.match(await done(msb('snapshot', 'ls')), /First +disk/);
  assert.match(await done(msb('snapshot', 'inspect', 'First')), /Source Sandbox: +origin/);
  await done(msb('restore', 'First', '--name', 'copy'));
  assert.equal(await done(msb('exec', 'copy', '--', 'cat', '/note')), 'before\n');
  await done(msb('snapshot', 'rm', 'First'));
  assert.doesNotMatch(await done(msb('snapshot', 'ls')), /First/);
});

test('the client itself keeps to its local runtime what servers do not have', async () => {
  await done(msb('create', '--name', 'local', BUSYBOX));
  const commands = [
    ['pause', 'local'],
    ['resume', 'local'],
    ['fork', 'local', '--name', 'child'],
    ['ping', 'local'],
    ['jobs', 'local'],
    ['exec', '-d', 'local', '--', 'sleep', '1'],
    ['create', '--name', 'other', '-p', '8080:80', BUSYBOX],
  ];
  for (const words of commands) {
    const { code, stderr } = await msb(...words);
    assert.notEqual(code, 0, words.join(' '));
    assert.match(stderr, /not supported by this backend|unsupported_feature|local/, words.join(' '));
  }
});
