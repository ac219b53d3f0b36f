import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { freePort } from '../../packages/server/src/testing/free-port.ts';
import { BUSYBOX } from '../engine/start-engine.ts';
import { OpenSsh, type Outcome } from './open-ssh.ts';
import { TestServer } from './start-server.ts';

interface AuditEvent {
  readonly actor: Readonly<Record<string, string>>;
  readonly payload: {
    readonly session_id: string;
    readonly command: string;
    readonly commands: number;
  };
}

interface Reply {
  readonly status: number;
  readonly body: { readonly id: string; readonly status: string; readonly data: readonly AuditEvent[] };
}

const MIB = 1024 * 1024;

describe('the SSH gateway, with OpenSSH and the real engine', { concurrency: false }, () => {
  let server: TestServer;
  let openSsh: OpenSsh;

  before(async () => {
    server = await TestServer.start({
      args: ['--dev', '--ssh-port', '0'],
      engineArgs: ['--isolation', 'container'],
    });
    openSsh = await OpenSsh.create(await findPort());
    await register('mine', await openSsh.makeKey('mine'));
    await openSsh.makeKey('unknown');
    await create('box');
  });
  after(async () => {
    await openSsh?.destroy();
    await server.destroy();
  });

  const findPort = async () => {
    let found: string | undefined;
    const isThere = async () => {
      const lines = (await server.log()).split('\n').slice(0, -1);
      found = lines.findLast((line) => line.includes('the SSH gateway listens'));
      return found !== undefined;
    };
    await waitUntil(isThere, { what: 'the SSH gateway listens' });
    return (JSON.parse(found ?? '{}') as { port: number }).port;
  };
  const rest = async (method: string, path: string, payload?: unknown): Promise<Reply> => {
    const response = await fetch(`${server.url}/v1${path}`, {
      method,
      headers: payload === undefined ? {} : { 'content-type': 'application/json' },
      ...(payload === undefined ? {} : { body: JSON.stringify(payload) }),
    });
    return { status: response.status, body: (await response.json()) as Reply['body'] };
  };
  const register = async (name: string, publicKey: string): Promise<string> => {
    const { status, body } = await rest('POST', '/users/me/ssh-keys', { name, public_key: publicKey });
    assert.equal(status, 200, JSON.stringify(body));
    return body.id;
  };
  const create = async (slug: string, more: object = {}) => {
    const { status, body } = await rest('POST', '/sandboxes?start=true&wait_for=running&wait_timeout=60', {
      name: slug,
      slug: `ssh-${slug}`,
      image: { type: 'oci', reference: BUSYBOX },
      ...more,
    });
    assert.deepEqual([status, body.status], [200, 'running'], JSON.stringify(body));
  };
  const target = 'ssh-box@127.0.0.1';
  const ssh = (args: readonly string[], input: string | Buffer = ''): Promise<Outcome> =>
    openSsh.run('ssh', 'mine', args, input);
  const events = async (type: string): Promise<readonly AuditEvent[]> =>
    (await rest('GET', `/orgs/default/events?event_type=${type}&limit=100`)).body.data;

  test('a command has its output, its errors, its input and its exit status', async () => {
    const { code, stdout, stderr } = await ssh([target, 'cat; echo wrong >&2; exit 7'], 'typed');
    assert.deepEqual([code, stdout.toString(), stderr], [7, 'typed', 'wrong\n']);
    assert.equal((await ssh([target, 'no-such-program'])).code, 127);
    // OpenSSH reports a command that a signal ended in this way.
    assert.equal((await ssh([target, 'kill -TERM $$'])).code, 255);
  });

  test('the environment of the client arrives, and user and folder are those of the sandbox', async () => {
    const { stdout } = await ssh(['-o', 'SetEnv=GREETING=hello', target, 'echo $GREETING $(id -u) $(pwd)']);
    assert.equal(stdout.toString(), 'hello 0 /\n');
  });

  test('output beyond every window arrives whole on both streams while the client reads slowly', async () => {
    const child = openSsh.start('ssh', 'mine', [
      target,
      'for i in 1 2 3 4; do head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2; done',
    ]);
    child.stdin?.end();
    let out = 0;
    let errors = 0;
    const slowly = async (stream: NodeJS.ReadableStream | null, count: (bytes: number) => void) => {
      for await (const chunk of stream ?? []) {
        count(chunk.length);
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    await Promise.all([
      slowly(child.stdout, (bytes) => (out += bytes)),
      slowly(child.stderr, (bytes) => (errors += bytes)),
      once(child, 'close'),
    ]);
    assert.deepEqual([out, errors, child.exitCode], [12_000_000, 12_000_000, 0]);
  });

  test('a shell with a terminal has its size, echoes, and takes Ctrl-C', async (t) => {
    const shell = await openShell(t, 'stty size; echo ready-$((40+2))\n');
    await shell.until(/\d+ \d+[^]*ready-42/);
    assert.match(shell.text, /echo ready-\$\(\(40\+2\)\)/);
    shell.type('echo asleep-$((1+1)); sleep 1000\n');
    await shell.until(/asleep-2/);
    shell.type('\u0003');
    await shell.until(/\^C/);
    shell.type('echo after-$((6*7)); tty; exit 3\n');
    assert.equal(await shell.exitCode(), 3);
    assert.match(shell.text, /after-42[^]*\/dev\/pts/);
  });

  test('a terminal that changes its size tells the shell', async (t) => {
    // `script` gives ssh a terminal; who changes its size waits for a file, so that ssh runs by then.
    const flag = join(openSsh.folder, 'resize');
    const lines = [
      'stty rows 24 cols 80',
      `(until [ -e ${flag} ]; do sleep 0.1; done; stty rows 41 cols 123 </dev/tty) &`,
      `exec ssh ${openSsh.options('mine').join(' ')} -tt -p ${openSsh.port} ${target}`,
    ];
    await writeFile(join(openSsh.folder, 'resize.sh'), `${lines.join('\n')}\n`);
    const child = spawn('script', ['-qec', `sh ${openSsh.folder}/resize.sh`, '/dev/null'], { stdio: 'pipe' });
    t.after(() => child.kill('SIGKILL'));
    let text = '';
    child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
    const until = (pattern: RegExp) =>
      waitUntil(() => pattern.test(text), { what: `${pattern}, but: ${text}` });
    child.stdin.write('stty size; echo ready-$((40+2))\n');
    await until(/24 80\s+ready-42/);
    await writeFile(flag, '');
    child.stdin.write(
      'until [ "$(stty size)" = "41 123" ]; do sleep 0.1; done; echo resized-$((1+1)); exit\n',
    );
    await until(/resized-2/);
  });

  async function openShell(t: TestContext, first: string) {
    const child = openSsh.start('ssh', 'mine', ['-tt', target]);
    t.after(() => child.kill('SIGKILL'));
    let text = '';
    child.stdout?.on('data', (chunk: Buffer) => (text += chunk.toString()));
    child.stdin?.on('error', () => undefined);
    child.stdin?.write(first);
    const closed = once(child, 'close');
    return {
      get text() {
        return text;
      },
      type: (keys: string) => void child.stdin?.write(keys),
      until: (pattern: RegExp) => waitUntil(() => pattern.test(text), { what: `${pattern}, but: ${text}` }),
      exitCode: async () => ((await closed) as [number])[0],
    };
  }

  test('sftp carries 20 MiB in both directions without changing a byte', async () => {
    const sent = randomBytes(20 * MIB + 7);
    await writeFile(join(openSsh.folder, 'up'), sent, { mode: 0o640 });
    const batch = [
      `put -p ${openSsh.folder}/up /tmp/up`,
      'mkdir /tmp/d',
      'rename /tmp/up /tmp/d/moved',
      'chmod 600 /tmp/d/moved',
      'ln -s moved /tmp/d/link',
      'ls -la /tmp/d',
      `get /tmp/d/link ${openSsh.folder}/down`,
    ];
    const { code, stdout, stderr } = await openSsh.run(
      'sftp',
      'mine',
      ['-b', '-', target],
      `${batch.join('\n')}\n`,
    );
    assert.equal(code, 0, stderr);
    assert.match(stdout.toString(), /-rw-------[^\n]* 20971527 [^\n]*moved/);
    const hash = (data: Buffer) => createHash('sha256').update(data).digest('hex');
    assert.equal(hash(await readFile(join(openSsh.folder, 'down'))), hash(sent));
    const sum = (await ssh([target, 'sha256sum /tmp/d/moved'])).stdout.toString();
    assert.equal(sum.split(' ')[0], hash(sent));
    const refused = ['mkdir /tmp/d', 'get /tmp/none', 'rmdir /tmp/d', 'mkdir /tmp/x/y'];
    for (const command of refused) {
      const outcome = await openSsh.run('sftp', 'mine', ['-b', '-', target], `${command}\n`);
      assert.equal(outcome.code, 1, `${command}: ${outcome.stdout.toString()}${outcome.stderr}`);
    }
  });

  test('scp copies a tree there and back', async () => {
    const tree = join(openSsh.folder, 'tree');
    await mkdir(join(tree, 'inner'), { recursive: true });
    await writeFile(join(tree, 'inner', 'ü.txt'), 'content');
    await writeFile(join(tree, 'run.sh'), '#!/bin/sh\necho ran', { mode: 0o755 });
    const up = await openSsh.run('scp', 'mine', ['-r', '-p', tree, `${target}:/tmp/`]);
    assert.equal(up.code, 0, up.stderr);
    assert.equal((await ssh([target, '/tmp/tree/run.sh'])).stdout.toString(), 'ran\n');
    const back = join(openSsh.folder, 'back');
    const down = await openSsh.run('scp', 'mine', ['-r', '-p', `${target}:/tmp/tree`, back]);
    assert.equal(down.code, 0, down.stderr);
    assert.equal(await readFile(join(back, 'inner', 'ü.txt'), 'utf8'), 'content');
    assert.equal((await stat(join(back, 'run.sh'))).mode & 0o777, 0o755);
  });

  test('a local port leads into the sandbox, and -W does the same over stdin and stdout', async (t) => {
    const port = await freePort();
    const child = openSsh.start('ssh', 'mine', ['-N', '-L', `${port}:127.0.0.1:7777`, target]);
    t.after(() => child.kill('SIGKILL'));
    const service = openSsh.start('ssh', 'mine', [target, 'while true; do nc -l -p 7777 -e cat; done']);
    t.after(() => service.kill('SIGKILL'));
    const echo = async () => {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => undefined);
      const chunks: Buffer[] = [];
      socket.on('data', (chunk) => chunks.push(chunk));
      socket.end('through the tunnel');
      await new Promise((resolve) => void socket.once('close', resolve));
      return Buffer.concat(chunks).toString();
    };
    await waitUntil(async () => (await echo()) === 'through the tunnel', {
      what: 'the forwarded port answers',
    });
    // Between two connections the port is closed for a moment.
    const isSame = async () => {
      const { code, stdout } = await ssh(['-W', '127.0.0.1:7777', target], 'over stdin');
      return code === 0 && stdout.toString() === 'over stdin';
    };
    await waitUntil(isSame, { what: 'the port answers over stdin and stdout' });
    const refused = await ssh(['-W', '127.0.0.1:7778', target], 'a closed port');
    assert.equal(refused.code, 255);
  });

  test('the forwarding of ports from the sandbox is refused', async () => {
    const args = ['-o', 'ExitOnForwardFailure=yes', '-R', '45072:127.0.0.1:1', target, 'true'];
    assert.equal((await ssh(args)).code, 255);
  });

  test('keys of every kind log in; unknown keys and unknown slugs are refused with the same words', async () => {
    for (const type of ['rsa', 'ecdsa']) {
      await register(type, await openSsh.makeKey(type, type));
      assert.equal((await openSsh.run('ssh', type, [target, 'true'])).code, 0, type);
    }
    const unknownKey = await openSsh.run('ssh', 'unknown', [target, 'true']);
    const nowhere = await ssh(['no-such-sandbox@127.0.0.1', 'true']);
    const both = await openSsh.run('ssh', 'unknown', ['no-such-sandbox@127.0.0.1', 'true']);
    assert.match(unknownKey.stderr, /Permission denied \(publickey\)/);
    for (const refused of [unknownKey, nowhere, both]) {
      assert.deepEqual(
        [refused.code, refused.stderr.replaceAll('no-such-sandbox', 'ssh-box')],
        [255, unknownKey.stderr],
      );
    }
  });

  test('a key that is revoked ends nothing at once and opens nothing any more', async (t) => {
    const id = await register('short-lived', await openSsh.makeKey('short-lived'));
    const child = openSsh.start('ssh', 'short-lived', [target, 'cat']);
    t.after(() => child.kill('SIGKILL'));
    child.stdin?.write('one\n');
    await once(child.stdout ?? child, 'data');
    assert.equal((await rest('DELETE', `/users/me/ssh-keys/${id}`)).status, 200);
    assert.equal((await openSsh.run('ssh', 'short-lived', [target, 'true'])).code, 255);
  });

  test('a sandbox that is stopped says which command starts it', async () => {
    await create('resting');
    await rest('POST', '/sandboxes/by-name/resting/stop');
    const stopped = async () => (await rest('GET', '/sandboxes/by-name/resting')).body.status === 'stopped';
    await waitUntil(stopped, { what: 'the sandbox is stopped' });
    const { code, stderr } = await ssh(['ssh-resting@127.0.0.1', 'true']);
    assert.equal(code, 255);
    assert.match(stderr, /sandbox 'resting' is stopped; start it with: svc start resting/);
    const files = await openSsh.run('sftp', 'mine', ['-b', '-', 'ssh-resting@127.0.0.1'], 'ls\n');
    assert.match(files.stderr, /svc start resting/);
  });

  test('each session and each command is on record with the key that it came with', async () => {
    await ssh([target, `echo ${'x'.repeat(400)}`]);
    let exec: AuditEvent | undefined;
    const isNoted = async () => {
      [exec] = await events('exec_started');
      return exec?.payload.command.startsWith('echo xxx') === true;
    };
    await waitUntil(isNoted, { what: 'the command is on record' });
    assert.ok(exec !== undefined);
    const { session_id: session } = exec.payload;
    // The ends of earlier sessions may still be noted.
    const isIts = ({ payload }: AuditEvent) => payload.session_id === session;
    await waitUntil(async () => (await events('ssh_session_closed')).some(isIts), {
      what: 'the end of the session is on record',
    });
    const opened = (await events('ssh_session_opened')).find(isIts);
    const closed = (await events('ssh_session_closed')).find(isIts);
    assert.ok(opened !== undefined && closed !== undefined);
    assert.equal(exec.actor['kind'], 'ssh_key');
    assert.equal(exec.actor['label'], 'mine');
    assert.match(exec.actor['fingerprint'] ?? '', /^SHA256:/);
    assert.equal(exec.payload.command.length, 257);
    assert.equal(closed.payload.commands, 1);
    assert.deepEqual([opened.actor, closed.actor], [exec.actor, exec.actor]);
  });

  test('the host key stays the same, and only the server can read it', async () => {
    const path = join(server.engine.folder, 'server', 'ssh_host_ed25519_key');
    assert.equal((await stat(path)).mode & 0o777, 0o600);
    const before = await readFile(path, 'utf8');
    assert.equal(await server.stop(), 0);
    await server.launch();
    assert.equal(await readFile(path, 'utf8'), before);
  });
});
