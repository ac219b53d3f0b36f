import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { BUSYBOX } from '../engine/start-engine.ts';
import { importConfigured } from '../engine/image-fixture.ts';
import { useCli } from './cli-line.ts';

const cli = useCli((svc) => svc.succeed(['run', '-d', '--name', 'box', '-l', 'team=ml', BUSYBOX]));

test('wait prints how the main command ended, in codes of a shell', async () => {
  const { svc } = cli;
  for (const [name, script, code] of [
    ['fine', 'exit 0', '0'],
    ['three', 'exit 3', '3'],
    ['signalled', 'kill -9 $$', '137'],
  ] as const) {
    await svc.succeed(['run', '-d', '--name', name, BUSYBOX, 'sh', '-c', `sleep 1; ${script}`]);
    assert.equal(await svc.succeed(['wait', name]), `${code}\n`, name);
  }
  assert.equal(await svc.succeed(['wait', 'three', 'fine']), '3\n0\n', 'those that have ended too');
  await svc.succeed(['create', '--name', 'never', BUSYBOX]);
  assert.match(
    (await svc.run(['wait', 'never'])).stderr,
    /'never' was never started\n {2}try: svc start never\n$/,
  );
  assert.match((await svc.run(['wait', 'missing'])).stderr, /try: svc ps --all\n$/);
  await svc.succeed(['rm', 'fine', 'three', 'signalled', 'never']);
});

test('kill ends a process that ignores SIGTERM, and forwards other signals', async () => {
  const { svc } = cli;
  const script = 'trap "" TERM; trap "echo told" USR1; echo up; while :; do sleep 0.1; done';
  await svc.succeed(['run', '-d', '--name', 'stubborn', BUSYBOX, 'sh', '-c', script]);
  const wrote = async (text: string) => (await svc.succeed(['logs', 'stubborn'])).includes(text);
  await waitUntil(() => wrote('up'), { what: 'it runs' });
  assert.equal(await svc.succeed(['kill', '-s', 'USR1', 'stubborn']), 'stubborn\n');
  await waitUntil(() => wrote('told'), { what: 'it was told' });
  assert.equal(await svc.succeed(['ps', '-q', '-f', 'name=stubborn']), 'stubborn\n', 'it runs on');
  assert.equal(await svc.succeed(['kill', 'stubborn']), 'stubborn\n');
  assert.equal(await svc.succeed(['wait', 'stubborn']), '137\n', 'killed, not asked');
  assert.match((await svc.run(['kill', 'stubborn'])).stderr, /try: svc start stubborn\n$/);
  await svc.succeed(['rm', 'stubborn']);
});

test('attach shows new output, and exits with the code of the main command', async () => {
  const { svc } = cli;
  const script =
    'echo before; until [ -e /go ]; do echo tick; sleep 0.1; done; echo after; echo oops >&2; exit 5';
  await svc.succeed(['run', '-d', '--name', 'talker', BUSYBOX, 'sh', '-c', script]);
  await waitUntil(async () => (await svc.succeed(['logs', 'talker'])).startsWith('before\ntick\n'), {
    what: 'it has begun',
  });
  const child = svc.spawn(['attach', 'talker']);
  const ended = once(child, 'exit') as Promise<[number | null]>;
  const wrote = { stdout: '', stderr: '' };
  child.stdout?.on('data', (chunk: Buffer) => (wrote.stdout += chunk.toString()));
  child.stderr?.on('data', (chunk: Buffer) => (wrote.stderr += chunk.toString()));
  await waitUntil(() => wrote.stdout !== '', { what: 'something is shown' });
  await svc.succeed(['exec', 'talker', 'touch', '/go']);
  const [code] = await ended;
  await waitUntil(() => wrote.stdout.endsWith('after\n'), { what: 'all of it is shown' });
  assert.match(wrote.stdout, /^(?:tick\n)+after\n$/);
  assert.deepEqual([code, wrote.stderr], [5, 'oops\n']);
  await svc.succeed(['rm', 'talker']);
});

test('a port without a host port gets a free one, which is printed and works', async () => {
  const { svc } = cli;
  const serve = 'mkdir /www; echo hello > /www/index.html; exec httpd -f -p 80 -h /www';
  const words = ['run', '-d', '--name', 'web', '-p', '80', BUSYBOX, 'sh', '-c', serve];
  const { code, stdout, stderr } = await svc.run(words);
  assert.deepEqual([code, stdout], [0, 'web\n'], stderr);
  const [, port] = /^80\/tcp -> 127\.0\.0\.1:(2\d{4})$/m.exec(stderr) ?? [];
  assert.equal(
    await svc.succeed(['ps', '--format', '{{.Ports}}', '-f', 'name=web']),
    `127.0.0.1:${port}->80/tcp\n`,
  );
  await waitUntil(
    async () =>
      (await fetch(`http://127.0.0.1:${port}/`).then(
        (answer) => answer.text(),
        () => '',
      )) === 'hello\n',
    { what: 'the port leads inside' },
  );
  await svc.succeed(['rm', '-f', 'web']);
});

test('a port that was named and is taken is refused, not replaced', async (t) => {
  const { svc } = cli;
  const taken = createServer();
  t.after(() => taken.close());
  await once(taken.listen(0, '127.0.0.1'), 'listening');
  const { port } = taken.address() as AddressInfo;
  const { code, stderr } = await svc.run(['run', '-p', `${port}:80`, '-p', '81', BUSYBOX, 'true']);
  assert.deepEqual([code, stderr.includes(`Port ${port} of 127.0.0.1 is in use`)], [125, true], stderr);
});

test('a command runs on the disk of a snapshot', async () => {
  const { svc } = cli;
  await svc.succeed(['run', '--name', 'origin', BUSYBOX, 'sh', '-c', 'echo kept > /kept']);
  await svc.succeed(['stop', 'origin']);
  await svc.succeed(['snapshot', 'create', 'origin', 'clean']);
  assert.equal(await svc.succeed(['run', '--snapshot', 'clean', '-', 'cat', '/kept']), 'kept\n');
  const { code, stderr } = await svc.run(['run', '--snapshot', 'clean', 'cat', '/kept']);
  assert.equal(code, 2);
  assert.match(stderr, /try: svc run --snapshot clean - COMMAND\n$/);
  await svc.succeed(['snapshot', 'rm', 'clean']);
  await svc.succeed(['rm', 'origin']);
});

test('without a terminal and a command the one of the image is run', async () => {
  const { svc } = cli;
  const config = { Env: ['PATH=/bin'], Entrypoint: ['wc'], Cmd: ['-w'] };
  await importConfigured(svc.server.engine, 'own/words', config, [
    ...['bin/', 'dev/', 'etc/', 'proc/', 'sys/', 'tmp/'].map((name) => ({ name, mode: 0o755 })),
    { name: 'bin/wc', mode: 0o755, body: await readFile('/bin/busybox') },
  ]);
  assert.match(await svc.succeed(['run', 'own/words'], 'one two three\n'), /^ *3\n$/);
  const { code, stderr } = await svc.run(['run', BUSYBOX]);
  assert.equal(code, 2, stderr);
  assert.match(stderr, /no command to run: .* has none of its own.*\n {2}try: svc run \S+ COMMAND\n$/);
  assert.equal(await svc.succeed(['ps', '-aq', '-f', 'name=run-']), '', 'nothing is left of it');
});

test('a list is filtered and formatted for scripts', async () => {
  const { svc } = cli;
  await svc.succeed(['create', '--name', 'resting', '-l', 'team=ops', BUSYBOX]);
  assert.equal(
    await svc.succeed(['ps', '--filter', 'label=team=ml', '--format', '{{.Name}} {{.State}}']),
    'box running\n',
  );
  assert.equal(
    await svc.succeed(['ps', '-f', 'status=created', '--format', '{{.Name}}']),
    'resting\n',
    'without -a',
  );
  assert.equal(await svc.succeed(['ps', '-aq', '-f', 'name=rest']), 'resting\n');
  const { code, stderr } = await svc.run(['ps', '--format', '{{.Colour}}']);
  assert.deepEqual([code, /knows no \{\{\.Colour\}\}; its fields are/.test(stderr)], [2, true], stderr);
  await svc.succeed(['rm', 'resting']);
});

test('version and info report client and server, and a server that is away', async () => {
  const { svc } = cli;
  assert.match(await svc.succeed(['version']), /^svc +\d+\.\d+\.\d+\nserver +\S+ at http:/);
  const away = await svc.run(['version'], { env: { ...svc.env, SVC_API_URL: 'http://127.0.0.1:1' } });
  assert.deepEqual([away.code, away.stdout.split('\n').length], [0, 2], away.stderr);
  assert.match(away.stderr, /the server does not say: .*127\.0\.0\.1:1/);
  const info = await svc.succeed(['info']);
  assert.match(info, /^Server +http.*\(SVC_API_URL\)\n/);
  assert.match(info, /^Sandboxes +1 run, \d+ do not$/m);
  assert.match(info, /^Isolation +(?:gvisor, )?container \(default\)$/m);
  assert.equal((await svc.json<{ running: number }>(['info'])).running, 1);
});

test('unsupported words of docker are answered with the command to type', async () => {
  const { svc } = cli;
  for (const words of [
    ['build', '.'],
    ['build', '-t', 'app', '--no-cache', '.'],
  ]) {
    const { code, stderr } = await svc.run(words);
    assert.equal(code, 2, stderr);
    assert.match(stderr, /does not build them\n {2}try: .*svc image import/);
  }
  const { code, stderr } = await svc.run(['run', '--cpus', '0.5', BUSYBOX, 'true']);
  assert.deepEqual([code, /CPUs are whole: give 1\./.test(stderr)], [2, true], stderr);
  const pulled = await svc.run(['pull', '127.0.0.1:1/no/such']);
  assert.deepEqual([pulled.code, /127\.0\.0\.1:1/.test(pulled.stderr)], [1, true], pulled.stderr);
});

test('a terminal whose input is a file ends with it', async () => {
  const { svc } = cli;
  assert.match(await svc.succeed(['exec', '-it', 'box', 'cat'], ''), /^(?:\^D\S*)?$/);
  assert.match(
    await svc.succeed(['exec', '-it', 'box', 'cat'], 'whole line\n'),
    /whole line\r\nwhole line\r\n/,
  );
  assert.match(await svc.succeed(['exec', '-it', 'box', 'cat'], 'part of a line'), /(?:part of a line){2}/);
  assert.match(await svc.succeed(['run', '-it', BUSYBOX, 'sh'], 'echo $((6*7)); exit\n'), /\b42\r\n/);
  assert.equal((await svc.run(['run', '-it', BUSYBOX, 'sh'])).code, 0, 'nothing at all');
  // It takes the terminal for itself after the end was typed, and reads another character there.
  assert.equal((await svc.run(['exec', '-it', 'box', 'sh', '-c', 'sleep 1; exec sh'])).code, 0);
});

test('errors name the argument, and the next command', async () => {
  const { svc } = cli;
  const small = await svc.run(['run', '-m', '1M', BUSYBOX, 'true']);
  assert.match(small.stderr, /^error: -m\/--memory must be .*\n {2}try: svc run --help\n$/);
  const relative = await svc.run(['run', '-v', 'data:relative', BUSYBOX, 'true']);
  assert.match(relative.stderr, /^error: (?:option '-v|-v\/--volume)/);
  const big = ['sh', '-c', 'x=x; while :; do x=$x$x; done'];
  const { code, stderr } = await svc.run(['run', '--name', 'hungry', '--rm', '-m', '32M', BUSYBOX, ...big]);
  assert.equal(code, 137, stderr);
  assert.doesNotMatch(stderr, /memory_mib|[0-9a-f]{8}-[0-9a-f]{4}/);
  await svc.succeed(['volume', 'create', 'data']);
  const missing = await svc.run(['volume', 'cp', 'data:/none', '-']);
  assert.match(missing.stderr, /\n {2}try: svc volume cp VOLUME:\/ FOLDER/);
  await svc.succeed(['volume', 'rm', 'data']);
});
