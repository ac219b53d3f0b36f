import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createConnection, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { waitUntil } from '@svc/contract/testing';
import { createKey } from '@svc/server/keys';
import { freePort } from '../../packages/server/src/testing/free-port.ts';
import { BUSYBOX } from '../engine/start-engine.ts';
import { useCli } from './cli-line.ts';

const exec = promisify(execFile);
const cli = useCli((svc) => svc.succeed(['run', '-d', '--name', 'box', '-l', 'team=ml', BUSYBOX]));

test('-o json prints the objects of the REST API, of every command that shows something', async () => {
  const { svc } = cli;
  const [listed] = await svc.json<{ id: string; name: string; status: string }[]>(['ps']);
  assert.deepEqual([listed?.name, listed?.status], ['box', 'running']);
  assert.equal((await svc.json<{ id: string }>(['inspect', 'box'])).id, listed?.id);
  const several = await svc.json<{ name: string }[]>(['inspect', 'box', 'box']);
  assert.deepEqual(
    several.map(({ name }) => name),
    ['box', 'box'],
  );
  const [stats] = await svc.json<{ sandbox_id: string }[]>(['stats', 'box']);
  assert.equal(stats?.sandbox_id, listed?.id);
  assert.equal(typeof (await svc.json<{ hard_cap: boolean }>(['quota'])).hard_cap, 'boolean');
  assert.ok(Array.isArray((await svc.json<{ line_items: unknown[] }>(['usage'])).line_items));
  assert.deepEqual(await svc.json(['port', 'box']), { ports: [], previews: [] });
  const missing = await svc.run(['inspect', '-o', 'json', 'missing']);
  const { error } = JSON.parse(missing.stderr) as { error: { code: string } };
  assert.deepEqual([missing.code, error.code], [1, 'sandbox_not_found']);
});

test('a command in a sandbox is given the words that Node takes for options of its own', async () => {
  const script = 'echo "$0"';
  assert.equal(
    await cli.svc.succeed(['exec', 'box', 'sh', '-c', script, '--env-file=/x']),
    '--env-file=/x\n',
  );
});

test('with --force an empty list of sandboxes is removed too; without it names are asked for', async () => {
  const removed = await cli.svc.run(['rm', '-f']);
  assert.deepEqual([removed.code, removed.stderr], [0, 'nothing to remove\n']);
  assert.equal(await cli.svc.succeed(['rm', '-f', '-o', 'json']), '[]\n');
  const refused = await cli.svc.run(['rm']);
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /try: svc rm NAME; their names: svc ps --all\n$/);
});

test('sandboxes are found by label, renamed, and shown by their use', async () => {
  const { svc } = cli;
  await svc.succeed(['create', '--name', 'other', '-l', 'team=ops', BUSYBOX]);
  assert.equal(await svc.succeed(['ps', '-aq', '--label', 'team=ops']), 'other\n');
  assert.equal(await svc.succeed(['rename', 'other', 'another']), 'another\n');
  assert.equal(await svc.succeed(['ps', '-aq', '--label', 'team=ops']), 'another\n');
  assert.match((await svc.run(['rename', 'another', 'box'])).stderr, /try: svc ps --all\n$/);
  await svc.succeed(['rm', 'another']);
  await waitUntil(
    async () => /box +[\d.]+% +[\d.]+ .iB of 512 MiB/.test(await svc.succeed(['stats', 'box'])),
    { what: 'something was measured' },
  );
});

test('a process that was detached runs on, and its output can be read while it runs and after', async () => {
  const { svc } = cli;
  const script = 'echo one; echo oops >&2; sleep 1; echo two; exit 4';
  const id = (await svc.succeed(['exec', '-d', '--name', 'job', 'box', 'sh', '-c', script])).trim();
  const followed = await svc.run(['process', 'logs', '-f', 'box', 'job']);
  assert.deepEqual([followed.stdout, followed.stderr], ['one\ntwo\n', 'oops\n']);
  const [listed] = JSON.parse(await svc.succeed(['process', 'ls', '-o', 'json', 'box'])) as {
    id: string;
    exit: { code: number };
  }[];
  assert.deepEqual([listed?.id, listed?.exit.code], [id, 4]);
  assert.equal(await svc.succeed(['process', 'logs', 'box', 'job']), 'one\ntwo\n');
  const rest = await svc.run(['process', 'logs', '--offset', '4-2', 'box', 'job']);
  assert.deepEqual([rest.stdout, rest.stderr], ['two\n', 'ps\n']);
  await svc.succeed(['exec', '-d', '--name', 'endless', 'box', 'sh', '-c', 'echo so far; exec sleep 1000']);
  await waitUntil(async () => (await svc.succeed(['process', 'logs', 'box', 'endless'])) === 'so far\n');
  await svc.succeed(['process', 'kill', '-s', 'kill', 'box', 'endless']);
  await waitUntil(async () => /endless +exited/.test(await svc.succeed(['process', 'ls', 'box'])));
  await svc.succeed(['process', 'rm', 'box', 'job']);
  assert.match((await svc.run(['process', 'logs', 'box', 'job'])).stderr, /try: svc process ls/);
});

test('a pipe into attach is the input of the process, to its end; an empty pipe ends nothing', async () => {
  const { svc } = cli;
  const attach = (name: string, input: string) => svc.run(['process', 'attach', 'box', name], { input });
  await svc.succeed(['exec', '-di', '--name', 'sorter', 'box', 'sort']);
  assert.equal((await attach('sorter', 'b\na\n')).stdout, 'a\nb\n');
  await svc.succeed(['exec', '-di', '--name', 'keeper', 'box', 'sh', '-c', 'echo begun; cat; exit 7']);
  const watched = attach('keeper', '');
  await waitUntil(async () => (await svc.run(['process', 'logs', 'box', 'keeper'])).stdout === 'begun\n');
  const ended = await attach('keeper', 'last\n');
  assert.deepEqual([ended.stdout, ended.code], ['begun\nlast\n', 7]);
  assert.equal((await watched).stdout, 'begun\nlast\n');
});

test('operations are in the events, each once while they are followed', async () => {
  const { svc } = cli;
  const names = ['first', 'second', 'third'];
  const child = svc.spawn(['events', '-f', '-n', '1', '-o', 'json']);
  const ended = once(child, 'exit');
  const made: string[] = [];
  let hasBegun = false;
  for await (const line of createInterface(child.stdout ?? Readable.from([]))) {
    const { event_type: type, payload } = JSON.parse(line) as {
      event_type: string;
      payload: { name: string };
    };
    if (hasBegun && type === 'sandbox_created') made.push(payload.name);
    if (!hasBegun) for (const name of names) await svc.succeed(['create', '--name', name, BUSYBOX]);
    hasBegun = true;
    if (made.includes('third')) child.kill('SIGINT');
  }
  await ended;
  assert.deepEqual(made, names);
  const about = await svc.succeed(['events', '--sandbox', 'second', '--type', 'sandbox_created']);
  assert.match(about, /^.*sandbox_created.*name=second.*\n?$/, 'one line');
  await svc.succeed(['rm', ...names]);
  assert.match(
    await svc.succeed(['events', '--type', 'sandbox_deleted', '-n', '1']),
    /sandbox_deleted .*third/,
  );
});

test('a snapshot of a running sandbox is what another one begins with', async () => {
  const { svc } = cli;
  await svc.succeed(['create', '--name', 'origin', BUSYBOX]);
  const early = await svc.run(['snapshot', 'create', 'origin', 'clean']);
  assert.match(early.stderr, /origin' is created; wait until it runs, or start it\n {2}try: svc start/);
  await svc.succeed(['start', 'origin']);
  await svc.succeed(['exec', 'origin', 'sh', '-c', 'echo kept > /kept']);
  await svc.succeed(['snapshot', 'create', 'origin', 'clean']);
  assert.equal(await svc.succeed(['exec', 'origin', 'cat', '/kept']), 'kept\n');
  assert.equal(await svc.succeed(['snapshot', 'ls', '-q']), 'clean\n');
  await svc.succeed(['create', '--name', 'copy', '--snapshot', 'clean', '-']);
  await svc.succeed(['start', 'copy']);
  assert.equal(await svc.succeed(['exec', 'copy', 'cat', '/kept']), 'kept\n');
  await svc.succeed(['snapshot', 'rm', 'clean']);
  await svc.succeed(['rm', '-f', 'origin', 'copy']);
});

test('a context names a server and a key, which is kept where only its owner can read it', async () => {
  const { svc } = cli;
  const { key } = await createKey(svc.server.engine.folder, { namespace: 'elsewhere' });
  const env = svc.bareEnv;
  const run = async (words: readonly string[], input?: string) =>
    await svc.run(words, { env, ...(input === undefined ? {} : { input }) });
  const added = await run(
    ['context', 'add', 'lab', '--url', `${svc.server.url}/`, '--key-stdin', '--use'],
    `${key}\n`,
  );
  assert.equal(added.code, 0, added.stderr);
  const keyFile = join(svc.home, '.config/svc/keys/lab');
  assert.equal((await stat(keyFile)).mode & 0o777, 0o600);
  await run(['context', 'add', 'main', '--url', svc.server.url, '--key-env', 'MAIN_KEY']);
  const listed = await run(['context', 'ls']);
  assert.match(listed.stdout, /\* +lab +http.*\n +main +http.* +env:MAIN_KEY/);
  assert.match(listed.stderr, /\(context lab\)\n$/);
  assert.ok(!listed.stdout.includes(key));

  assert.equal((await run(['ps', '-q'])).stdout, '', 'another organization has other sandboxes');
  const withMain = { ...env, MAIN_KEY: svc.env['SVC_API_KEY'] ?? '' };
  assert.equal((await svc.run(['--context', 'main', 'ps', '-q'], { env: withMain })).stdout, 'box\n');
  assert.equal((await svc.run(['ps', '-q', '--context', 'main'], { env: withMain })).stdout, 'box\n');
  assert.match((await run(['ps', '--context', 'main'])).stderr, /try: export MAIN_KEY=KEY\n$/);
  assert.equal(
    (await svc.run(['ps', '-q'])).stdout,
    'box\n',
    'the environment comes before the context in use',
  );

  const envKey = { ...svc.env, SVC_API_URL: '' };
  await run(['context', 'add', 'open', '--url', svc.server.url]);
  const leaked = await svc.run(['ps', '--context', 'open'], { env: envKey });
  assert.equal(leaked.code, 1, 'a key of the environment is not sent to the server of a context');
  assert.match(leaked.stderr, /SVC_API_KEY|key/);

  await writeFile(join(svc.home, 'loose'), key, { mode: 0o644 });
  const loose = await run(['context', 'add', 'loose', '--url', svc.server.url, '--key-file', 'loose']);
  assert.match(loose.stderr, /try: chmod 600/);
  await run(['context', 'rm', 'lab']);
  await assert.rejects(stat(keyFile));
  assert.match((await run(['context', 'use', 'lab'])).stderr, /try: svc context ls\n$/);
});

test('a server that is not there is named, with the command that starts one', async () => {
  const { svc } = cli;
  const gone = { ...svc.env, SVC_API_URL: 'http://127.0.0.1:1' };
  for (const words of [['ps'], ['run', 'x', 'true'], ['exec', 'x', 'true'], ['cp', 'x:/a', '-'], ['quota']]) {
    const { code, stderr } = await svc.run(words, { env: gone });
    assert.equal(code, words.includes('true') ? 125 : 1, words.join(' '));
    assert.match(
      stderr,
      /^error: The server at http:\/\/127\.0\.0\.1:1 .*\n {2}try: svc server start --dev\n$/,
    );
  }
  const wrong = await svc.run(['ps'], { env: { ...svc.env, SVC_API_KEY: 'svc_wrong' } });
  assert.deepEqual([wrong.code, /svc server keygen/.test(wrong.stderr)], [1, true]);
  assert.ok(!wrong.stderr.includes('svc_wrong'));
});

test('a reached limit is reported with the numbers of svc quota', async (t) => {
  const { svc } = cli;
  const here = ['--path', svc.server.engine.folder];
  const limit = async (value: string) =>
    await svc.succeed(['org', 'quota', 'default', `max_memory_mib_per_sandbox=${value}`, ...here]);
  t.after(() => limit('plan'));
  await limit('1024');
  assert.match(await svc.succeed(['quota']), /^Memory of one sandbox +1\.0 GiB$/m);
  const { code, stderr } = await svc.run(['create', '-m', '2G', BUSYBOX]);
  assert.equal(code, 1);
  assert.match(
    stderr,
    /\(Memory of one sandbox: at most 1\.0 GiB, this makes it 2\.0 GiB\)\n {2}try: svc quota\n$/,
  );
});

test('images of a server are listed over its API, and what the operator brought is not given up there', async () => {
  const { svc } = cli;
  const listed = await svc.run(['image', 'ls']);
  assert.equal(listed.code, 0, listed.stderr);
  assert.match(listed.stdout, /svc\/busybox/);
  const removed = await svc.run(['image', 'rm', 'svc/busybox']);
  assert.equal(removed.code, 1, removed.stdout);
  assert.match(removed.stderr, /svc\/busybox/);
  assert.match((await svc.run(['image', 'ls'])).stdout, /svc\/busybox/);
});

test('events are followed on when the server was away for a moment', async (t) => {
  const event = (sequence: number) => ({
    sequence,
    timestamp: '2026-01-01T00:00:00Z',
    event_type: `event_${sequence}`,
    actor: { kind: 'system', label: 'system' },
    payload: {},
  });
  let asked = 0;
  const server = createServer((_request, response) => {
    asked += 1;
    if (asked === 1) response.end(JSON.stringify({ data: [event(1)], next_cursor: null }));
    // Each poll asks twice before it gives up.
    else if (asked < 5) response.destroy();
    else response.end(JSON.stringify({ data: [event(2), event(1)], next_cursor: null }));
  });
  t.after(() => server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const env = { ...cli.svc.bareEnv, SVC_API_URL: `http://127.0.0.1:${port}` };
  const child = cli.svc.spawn(['events', '-f', '-n', '1', '-o', 'json'], env);
  const ended = once(child, 'exit');
  const seen: number[] = [];
  for await (const line of createInterface(child.stdout ?? Readable.from([]))) {
    seen.push((JSON.parse(line) as { sequence: number }).sequence);
    if (seen.length === 2) child.kill('SIGINT');
  }
  await ended;
  assert.deepEqual(seen, [1, 2]);
});

test('completion scripts are sound, and complete commands, options, values and names', async () => {
  const { svc } = cli;
  const script = join(svc.home, 'completion.bash');
  await writeFile(script, await svc.succeed(['completion', 'bash']));
  await exec('bash', ['-n', script]);
  for (const shell of ['zsh', 'fish'])
    assert.match(await svc.succeed(['completion', shell]), /svc complete-words/);
  const complete = async (...words: string[]) =>
    (await svc.succeed(['complete-words', '--', ...words])).split('\n').filter((word) => word !== '');
  assert.deepEqual(await complete('re'), ['recover', 'rename', 'restart', 'restore']);
  assert.deepEqual(await complete('volume', 'c'), ['cp', 'create']);
  assert.deepEqual(await complete('run', '--isolation', 'g'), ['gvisor']);
  assert.deepEqual(await complete('run', '--idle'), ['--idle-timeout']);
  // Completion of names waits two seconds at most, which a busy machine may take.
  const completes = async (words: string[], expected: string) => {
    let found: string[] = [];
    await waitUntil(async () => (found = await complete(...words)).length > 0, { what: 'names are found' });
    assert.deepEqual(found, [expected]);
  };
  await completes(['exec', 'b'], 'box');
  await completes(['cp', 'file', 'b'], 'box:');
  assert.deepEqual(await complete('recover', 'box', ''), ['restart', 'stop', 'wait']);
  assert.deepEqual(await complete('completion', ''), ['bash', 'fish', 'zsh']);
});

test('ssh through a gateway is the ssh of this machine, with the slug as the user', async () => {
  const { svc } = cli;
  const { slug } = await svc.json<{ slug: string }>(['inspect', 'box']);
  await writeFile(join(svc.home, 'ssh'), '#!/bin/sh\necho "$@"; exit 9\n', { mode: 0o755 });
  const env = { ...svc.env, PATH: `${svc.home}:${svc.env['PATH']}` };
  const { code, stdout } = await svc.run(
    ['ssh', '--gateway-address', 'gate.example.com:5522', 'box', 'uname', '-a'],
    { env },
  );
  assert.deepEqual([code, stdout], [9, `-p 5522 ${slug}@gate.example.com uname -a\n`]);
  const wrong = await svc.run(['ssh', '--gateway-address', '-oProxyCommand=x:22', 'box'], { env });
  assert.equal(wrong.code, 2);
});

test('mistakes are answered with what to type next', async () => {
  const { svc } = cli;
  for (const [words, answer] of [
    [['exec', 'box'], /usage: svc exec \[options\] <name> <command\.\.\.>\n {2}try: svc exec --help\n$/],
    [['snapshot', 'creat'], /Did you mean create\?\)\n {2}try: svc snapshot --help\n$/],
    [
      ['run', '--name', 'ä', BUSYBOX, 'true'],
      /name is not valid: 1–128 letters.*\n {2}try: svc run --help\n$/,
    ],
    [['run', '-v', 'none:/data', BUSYBOX, 'true'], /try: svc volume create none\n$/],
    [['cp', 'box:/none', '-'], /try: svc exec box ls -la \/\n$/],
    [['process', 'logs', 'box', 'none'], /try: svc process ls NAME\n$/],
    [
      ['run', '--pull', 'never', 'none', 'true'],
      /did not start: .*`svc image pull docker\.io\/library\/none:latest`\n$/,
    ],
  ] as const) {
    const { code, stderr } = await svc.run(words);
    assert.notEqual(code, 0, words.join(' '));
    assert.match(stderr, answer);
  }
  assert.equal(await svc.succeed(['start', 'box']), 'box\n', 'one that runs is fine');
  const env = { ...svc.env, HERE: 'value' };
  const { stdout } = await svc.run(['exec', '-e', 'HERE', '-e', 'GONE', 'box', 'env'], { env });
  assert.deepEqual([/^HERE=value$/m.test(stdout), /^GONE/m.test(stdout)], [true, false]);
  assert.match(await svc.succeed(['--version']), /^\d+\.\d+\.\d+\n$/);
});

test('a published port leads into the sandbox', async () => {
  const { svc } = cli;
  const port = await freePort();
  const serve = 'while true; do echo hello | nc -l -p 7; done';
  await svc.succeed(['run', '-d', '--name', 'served', '-p', `${port}:7`, BUSYBOX, 'sh', '-c', serve]);
  assert.equal(await svc.succeed(['port', 'served']), `7/tcp -> 127.0.0.1:${port}\n`);
  await waitUntil(async () => (await readFrom(port)) === 'hello\n', { what: 'the sandbox answers' });
  await svc.succeed(['rm', '-f', 'served']);
});

async function readFrom(port: number): Promise<string> {
  const socket = createConnection(port, '127.0.0.1');
  let text = '';
  try {
    for await (const chunk of socket) text += String(chunk);
  } catch {
    // The socket does not listen yet.
  }
  return text;
}

test('a server that hangs is noticed within the time it is given', async (t) => {
  const { svc } = cli;
  const server = createServer(() => {}).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const SVC_API_URL = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  for (const [words, more] of [
    [['ps', '--server-timeout', '1s'], {}],
    [['ps'], { SVC_TIMEOUT: '1' }],
  ] as const) {
    const { code, stderr } = await svc.run(words, { env: { ...svc.env, SVC_API_URL, ...more } });
    assert.equal(code, 1);
    assert.match(stderr, /has not answered for 1s\n {2}try: svc server logs .*--server-timeout/);
  }
  const wrong = await svc.run(['ps', '--server-timeout', 'soon']);
  assert.deepEqual([wrong.code, /from 1s to 24h, not 'soon'/.test(wrong.stderr)], [2, true], wrong.stderr);
});
