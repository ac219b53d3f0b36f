import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFile, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { request, type IncomingMessage } from 'node:http';
import { join, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { waitUntil } from '@svc/contract/testing';
import { imageOf, layerOf } from '../../packages/engine/src/testing/test-layers.ts';
import { TestRegistry } from '../../packages/engine/src/testing/test-registry.ts';
import { BUSYBOX } from '../engine/start-engine.ts';
import { useCli, type Outcome } from './cli-line.ts';
import { Tmux } from './tmux.ts';

const SVC = resolve(import.meta.dirname, '../../svc');
const exec = promisify(execFile);

interface Capabilities {
  readonly ssh: { readonly port: number; readonly host_key: string; readonly fingerprint: string };
}

let registry: TestRegistry | undefined;
let token = '';
after(() => registry?.[Symbol.asyncDispose]());

const cli = useCli(
  async (svc) => {
    const at = ['--path', svc.server.engine.folder];
    await svc.succeed([...at, 'org', 'create', 'acme', '--owner', 'ann@example.com']);
    token = (await svc.succeed([...at, 'token', 'create', '--user', 'ann@example.com'])).trim();
    await mkdir(join(svc.home, '.ssh'), { mode: 0o700 });
    await mkdir(join(svc.home, 'bin'));
    await writeFile(join(svc.home, 'bin/ssh'), WATCHED_SSH, { mode: 0o755 });
    await svc.run(['run', '-d', '--name', 'box', BUSYBOX], { env: annOf(svc.env) });
  },
  async () => {
    registry = await TestRegistry.start();
    return {
      args: [
        '--ssh-port',
        '0',
        '--preview-domain',
        'p.test',
        '--recovery-time',
        '0',
        '--allowed-host',
        '::ffff:7f00:1',
      ],
      engineArgs: ['--insecure-registry', registry.host],
    };
  },
);

/** The ssh of this machine, which leaves a note. With a file `swap` it finds the host key in there in our known_hosts file. */
const WATCHED_SSH = `#!/bin/sh
echo used >> "$HOME/ssh-used"
known=$(echo "$2" | cut -d'"' -f2)
[ ! -e "$HOME/swap" ] || sed -i "s#ssh-ed25519 .*#$(cut -d' ' -f1-2 "$HOME/swap")#" "$known"
exec /usr/bin/ssh "$@"
`;

/** How often ssh was run so far. */
async function sshUses(): Promise<number> {
  const notes = await readFile(join(cli.svc.home, 'ssh-used'), 'utf8').catch(() => '');
  return notes.split('\n').length - 1;
}

/** A member of an organization with a token of her own, instead of an API key. */
function annOf(env: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const PATH = `${env['HOME']}/bin:${env['PATH']}`;
  return { ...env, PATH, SVC_API_KEY: token, SVC_ORG: 'acme' };
}

async function ann(words: readonly string[], input?: string): Promise<Outcome> {
  return await cli.svc.run(words, {
    env: annOf(cli.svc.env),
    ...(input === undefined ? {} : { input }),
  });
}

async function annDoes(words: readonly string[], input?: string): Promise<string> {
  const { code, stdout, stderr } = await ann(words, input);
  assert.equal(code, 0, `svc ${words.join(' ')}: ${stderr}`);
  return stdout;
}

async function makeKey(name: string): Promise<string> {
  const path = join(cli.svc.home, '.ssh', name);
  await exec('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', `${name}@laptop`, '-f', path]);
  return path;
}

test('the keys of ~/.ssh are registered, listed, and revoked by name; a file without a public key is not sent', async () => {
  assert.match((await ann(['ssh-key', 'add'])).stderr, /try: ssh-keygen -t ed25519\n$/);
  assert.match((await ann(['ssh-key', 'ls'])).stderr, /svc ssh-key add\n$/);
  const path = await makeKey('first');
  assert.match(await annDoes(['ssh-key', 'add']), /^[0-9a-f-]{36} {2}first@laptop {2}SHA256:/);
  const again = await ann(['ssh-key', 'add']);
  assert.deepEqual([again.code, again.stdout, again.stderr], [0, '', 'first@laptop is registered already\n']);
  const line = await readFile(`${await makeKey('second')}.pub`, 'utf8');
  await annDoes(['ssh-key', 'add', '--name', 'piped', '-'], line);
  assert.match(await annDoes(['ssh-key', 'ls']), /^ID .*\n.* piped +SHA256.*\n.* first@laptop +SHA256/);
  const listed = JSON.parse(await annDoes(['ssh-key', 'ls', '-o', 'json'])) as { name: string }[];
  assert.deepEqual(
    listed.map(({ name }) => name),
    ['piped', 'first@laptop'],
  );
  const secret = await ann(['ssh-key', 'add', path]);
  assert.deepEqual([secret.code, /try: svc ssh-key add .*first\.pub\n$/.test(secret.stderr)], [2, true]);
  assert.equal(await annDoes(['ssh-key', 'rm', 'piped', 'first@laptop']), 'piped\nfirst@laptop\n');
  assert.match((await ann(['ssh-key', 'rm', 'piped'])).stderr, /try: svc ssh-key ls\n$/);
  const withKey = await cli.svc.run(['ssh-key', 'ls']);
  assert.deepEqual([withKey.code, /svc token create/.test(withKey.stderr)], [1, true], withKey.stderr);
});

test('ssh goes through the gateway when a key is registered there, and without SSH otherwise', async () => {
  const { svc } = cli;
  assert.equal(await annDoes(['ssh', 'box', 'echo', '$((6*7))']), '42\n');
  assert.equal(await sshUses(), 0, 'no key is registered');
  await makeKey('third');
  await annDoes(['ssh-key', 'add', join(svc.home, '.ssh/third.pub')]);
  assert.equal(await annDoes(['ssh', 'box', 'echo', '$((6*7))']), '42\n');
  assert.equal(await sshUses(), 1);
  assert.equal(await annDoes(['ssh', '--no-gateway', 'box', 'echo', '$((6*7))']), '42\n');
  assert.equal(await sshUses(), 1);
  assert.equal((await ann(['ssh', 'box', 'exit 7'])).code, 7);
  assert.equal(await sshUses(), 2);
  assert.equal(await annDoes(['ssh', '--gateway', 'box', 'cat'], 'through ssh'), 'through ssh');
  const [file = ''] = await readdir(join(svc.home, '.config/svc/ssh'));
  const known = join(svc.home, '.config/svc/ssh', file);
  assert.equal((await stat(known)).mode & 0o777, 0o600);
  const { ssh } = JSON.parse(await capabilities()) as Capabilities;
  assert.equal(await readFile(known, 'utf8'), `[127.0.0.1]:${ssh.port} ${ssh.host_key}\n`);
});

test('a host with another key than the server says is not talked to', async () => {
  const swap = join(cli.svc.home, 'swap');
  await copyFile(`${await makeKey('stranger')}.pub`, swap);
  const { code, stdout, stderr } = await ann(['ssh', '--gateway', 'box', 'echo', 'reached']);
  await rm(swap);
  assert.deepEqual([code, stdout], [255, '']);
  assert.match(stderr, /Host key verification failed\.\r?\n.*\n {2}try: svc ssh --no-gateway box\n$/s);
});

test('a gateway that is asked for and cannot be used says which command helps', async () => {
  await annDoes(['ssh-key', 'rm', 'third@laptop']);
  const noKey = await ann(['ssh', '--gateway', 'box']);
  assert.deepEqual([noKey.code, noKey.stderr.endsWith('try: svc ssh-key add\n')], [2, true], noKey.stderr);
  const wrong = await ann(['ssh', '--gateway-address', '-oProxyCommand=x:22', 'box']);
  assert.deepEqual([wrong.code, /HOST:PORT/.test(wrong.stderr)], [2, true], wrong.stderr);
});

test('a preview is made, opened with its token, shown by port, and revoked by the start of its id', async () => {
  const { svc } = cli;
  const serve = `while true; do printf 'HTTP/1.0 200 OK\\r\\ncontent-length: 6\\r\\n\\r\\nhello\\n' | nc -l -p 3000; done`;
  await annDoes(['exec', '-d', 'box', 'sh', '-c', serve]);
  assert.match((await ann(['preview', 'ls', 'box'])).stderr, /svc preview create box PORT\n$/);
  const made = await ann(['preview', 'create', '--expire', '1h', 'box', '3000']);
  assert.match(made.stdout, /^http:\/\/3000-[a-z0-9-]+\.p\.test:\d+\/\?svc_preview_token=\S+\n$/);
  const [, id = ''] = /svc preview revoke box (\S+)\n$/.exec(made.stderr) ?? [];
  await waitUntil(async () => (await open(made.stdout.trim())) === 'hello\n', {
    what: 'the preview answers',
  });
  assert.match(await annDoes(['port', 'box']), /^3000\/http -> http:\/\/3000-.*p\.test:\d+\/ \(preview /);
  assert.match(await annDoes(['preview', 'ls', 'box']), new RegExp(`^ID .*\n${id} +3000 +http`));
  assert.match((await ann(['preview', 'create', 'box', '70000'])).stderr, /from 1 to 65535/);
  assert.match((await ann(['preview', 'revoke', 'box', 'ffff-none'])).stderr, /try: svc preview ls box\n$/);
  assert.equal(await annDoes(['preview', 'revoke', 'box', id.slice(0, 13)]), `${id}\n`);
  assert.deepEqual(JSON.parse(await annDoes(['port', '-o', 'json', 'box'])), { ports: [], previews: [] });
  assert.equal(svc.env['SVC_ORG'], undefined);
});

test('the pull of an image is a bar on a terminal and lines in a log, for a sandbox and for svc image pull', async () => {
  const { svc } = cli;
  assert.ok(registry !== undefined);
  const { host } = registry;
  await pushBusybox(registry, 'one', 'two');
  const blocked = Promise.withResolvers<void>();
  registry.gate = blocked.promise;
  await using tmux = await Tmux.open(svc.home, annOf(svc.env));
  try {
    await tmux.line(`clear; ${SVC} run ${host}/one echo pulled-$((40+2))`);
    await tmux.until(/run-\w+: downloading ░+ 0 B of [\d.]+ \w+ … \d+s/);
  } finally {
    blocked.resolve();
  }
  assert.doesNotMatch(await tmux.until(/^pulled-42\n(.*\n)*host>$/m), /downloading/);
  const again = Promise.withResolvers<void>();
  registry.gate = again.promise;
  const child = svc.spawn(['image', 'pull', `${host}/two`], annOf(svc.env));
  const output = text(child.stdout ?? Readable.from([]));
  let lines = '';
  for await (const chunk of child.stderr ?? []) {
    lines += String(chunk);
    if (lines.includes('downloading 0% of')) again.resolve();
  }
  assert.match(await output, /two {2}sha256:[0-9a-f]{64} {2}[\d.]+ \w+\n$/, lines);
  assert.doesNotMatch(lines, /░|\r/);
  const { reference } = JSON.parse(await annDoes(['image', 'pull', '-o', 'json', `${host}/two`])) as {
    reference: string;
  };
  assert.equal(reference, `${host}/two`);
  const missing = await ann(['image', 'pull', `${host}/missing`]);
  assert.deepEqual([missing.code, /\n {2}try: /.test(missing.stderr)], [1, true], missing.stderr);
});

test('an image that one organization pulled with its password is not open to another', async () => {
  const { svc } = cli;
  assert.ok(registry !== undefined);
  await pushBusybox(registry, 'private');
  registry.auth = { username: 'ann', password: 'correct horse' };
  const image = `${registry.host}/private`;
  const login = ['--username', 'ann', '--password-stdin'];
  await annDoes(['image', 'pull', ...login, image], 'correct horse\n');
  assert.equal(await annDoes(['run', image, 'echo', 'mine']), 'mine\n');
  const other = await svc.run(['run', image, 'echo', 'mine']);
  assert.deepEqual([other.code, other.stdout], [125, '']);
  assert.ok(!other.stderr.includes('correct horse'));
});

test('after an outage the user decides how a sandbox goes on, and the output names the command', async () => {
  const { engine } = cli.svc.server;
  await engine.kill();
  const isUndecided = async () => /box +recovery_decision_required/.test(await annDoes(['ps', '-a']));
  await waitUntil(isUndecided, { timeoutMs: 60_000, what: 'the outage is seen' });
  const refused = await ann(['exec', 'box', 'true']);
  assert.deepEqual(
    [refused.code, refused.stderr.endsWith('try: svc recover box restart\n')],
    [125, true],
    refused.stderr,
  );
  await engine.launch();
  assert.match(await annDoes(['recover', 'box', 'restart']), /^box {2}starting\n$/);
  const isRunning = async () => (await ann(['exec', 'box', 'true'])).code === 0;
  await waitUntil(isRunning, { timeoutMs: 60_000, what: 'the sandbox runs again' });
  assert.match((await ann(['recover', 'box', 'wait'])).stderr, /'box' is running; recover is possible when/);
});

async function capabilities(): Promise<string> {
  const answer = await fetch(`${cli.svc.server.url}/v1/capabilities`, {
    headers: { authorization: `Bearer ${cli.svc.env['SVC_API_KEY']}` },
  });
  return await answer.text();
}

/** What is at an address whose name no resolver knows. */
async function open(address: string): Promise<string> {
  const { host, pathname, search, port } = new URL(address);
  const outgoing = request({
    host: '127.0.0.1',
    port,
    path: `${pathname}${search}`,
    headers: { host },
    agent: false,
  });
  const { promise, resolve: answered, reject } = Promise.withResolvers<IncomingMessage>();
  outgoing.once('response', answered).once('error', reject).end();
  return await text(await promise);
}

async function pushBusybox(to: TestRegistry, ...repositories: readonly string[]): Promise<void> {
  const busybox = await readFile('/bin/busybox');
  for (const repository of repositories) {
    const files = [
      { name: 'bin/busybox', body: busybox, mode: 0o755 },
      { name: 'bin/sh', type: 'symlink', linkname: 'busybox' } as const,
      { name: 'bin/echo', type: 'symlink', linkname: 'busybox' } as const,
      // Its own, so that none of its layers is there yet.
      { name: 'which', body: repository },
    ];
    await to.push(repository, 'latest', imageOf([await layerOf(files)]));
  }
}

test('API keys and tokens of a server elsewhere are made, listed and revoked over REST, for oneself', async () => {
  const { svc } = cli;
  // As a stranger to the machine: no right to its store, and none of its folders.
  const add = ['context', 'add', 'lab', '--url', svc.server.url, '--key-stdin'];
  assert.equal((await svc.run(add, { env: svc.bareEnv, input: token })).code, 0);
  const lab = async (...words: readonly string[]) =>
    await svc.run(['--context', 'lab', ...words], { env: svc.bareEnv });
  const json = async <T>(...words: readonly string[]) =>
    JSON.parse((await lab(...words, '-o', 'json')).stdout) as T;

  const made = await lab('apikey', 'create', '--name', 'far', '--expire', '1d');
  assert.match(made.stdout, /^svc_[0-9a-f]{64}\n$/, made.stderr);
  assert.match(made.stderr, /for organization acme; expires: \d{4}-/, 'her only organization is chosen');
  const keyed = { ...svc.bareEnv, SVC_API_URL: svc.server.url, SVC_API_KEY: made.stdout.trim() };
  assert.equal((await svc.run(['ps', '-q'], { env: keyed })).code, 0, 'the key works');
  const [key] = await json<{ id: string; name: string }[]>('apikey', 'ls', '--org', 'acme');
  assert.equal(key?.name, 'far');
  assert.match((await lab('apikey', 'revoke', key.id)).stderr, /is revoked/);
  assert.equal((await svc.run(['ps', '-q'], { env: keyed })).code, 1, 'and then it does not');

  const other = await json<{ id: string; token: string }>('token', 'create', '--name', 'phone');
  assert.match(other.token, /^svc_pat_/);
  assert.match((await lab('token', 'ls')).stdout, /phone/);
  await lab('token', 'revoke', other.id);
  assert.doesNotMatch((await lab('token', 'ls')).stdout, /phone/);

  const refused = await lab('token', 'create', '--user', 'bob@example.com');
  assert.deepEqual([refused.code, refused.stdout], [2, '']);
  assert.match(refused.stderr, /--user cannot be given\n {2}try: the same command on the machine/);
  const long = await lab('apikey', 'create', '--expire', '99999y');
  assert.deepEqual([long.code, /after the year 9999/.test(long.stderr)], [2, true]);
  await lab('context', 'rm', 'lab');
});

test('a server elsewhere is asked, not the store of this machine, and wants a token', async () => {
  const { svc } = cli;
  const key = (await svc.succeed(['apikey', 'create', '--path', svc.server.engine.folder])).trim();
  // An address that is not taken for this machine, though it leads here.
  const env = { ...svc.bareEnv, SVC_API_URL: svc.server.url.replace('127.0.0.1', '[::ffff:127.0.0.1]') };
  for (const words of [
    ['apikey', 'ls', '--org', 'default'],
    ['apikey', 'create'],
    ['token', 'ls'],
  ]) {
    const { code, stdout, stderr } = await svc.run(words, { env: { ...env, SVC_API_KEY: key } });
    assert.deepEqual([code, stdout], [1, ''], words.join(' '));
    assert.match(stderr, /this takes a personal access token, not an API key\n {2}try: svc token create/);
  }
  const mine = await svc.run(['token', 'ls', '--path', svc.server.engine.folder]);
  assert.match(mine.stderr, /say whose token is meant\n {2}try: --user/);
});

test('a token without an organization names what is missing; the SDK takes it from SVC_ORG too', async () => {
  const { SVC_ORG = '', ...env } = annOf(cli.svc.env);
  const { code, stderr } = await cli.svc.run(['ps'], { env });
  assert.deepEqual(
    [code, /\(yours: acme\)[^]*\n {2}try: export SVC_ORG=SLUG/.test(stderr)],
    [1, true],
    stderr,
  );
  const script = `import { Sandbox } from '@svc/sdk'; await Array.fromAsync(Sandbox.list()); console.log('listed')`;
  const words = ['--input-type=module', '--eval', script];
  const options = { cwd: join(import.meta.dirname, '../..'), env: { ...env, SVC_ORG } };
  assert.equal((await exec(process.execPath, words, options)).stdout, 'listed\n');
});

test('an admin invites, the invited person accepts, and roles and members change by address', async () => {
  const { svc } = cli;
  const at = ['--path', svc.server.engine.folder];
  const ben = (await svc.succeed([...at, 'token', 'create', '--user', 'ben@example.com'])).trim();
  const asBen = (...words: readonly string[]) =>
    svc.run(words, { env: { ...annOf(svc.env), SVC_API_KEY: ben } });
  const invited = await ann(['member', 'invite', 'Ben@example.com', '--role', 'admin']);
  assert.match(
    invited.stderr,
    /^lets Ben@example.com into acme as admin, until .*svc member accept TOKEN\n$/,
  );
  assert.match(await annDoes(['member', 'ls', '--invites']), /ben@example.com +admin/);
  assert.equal((await asBen('member', 'ls')).code, 1, 'not yet');
  const accepted = await asBen('member', 'accept', invited.stdout.trim());
  assert.match(accepted.stdout, /^you are admin of acme\n {2}next: export SVC_ORG=acme\n$/, accepted.stderr);
  assert.match(
    (await asBen('member', 'ls')).stdout,
    /^MEMBER .*\nann@example.com +owner.*\nben@example.com +admin/,
  );
  await annDoes(['member', 'role', 'ben@example.com', 'member']);
  const refused = await asBen('member', 'invite', 'eve@example.com');
  assert.deepEqual([refused.code, refused.stdout], [1, '']);
  await annDoes(['member', 'invite', 'eve@example.com']);
  assert.match(
    await annDoes(['member', 'rm', 'eve@example.com']),
    /^the invite to eve@example.com is void\n$/,
  );
  assert.match(await annDoes(['member', 'rm', 'BEN@example.com']), /is no member any more\n$/);
  const gone = await ann(['member', 'role', 'ben@example.com', 'admin']);
  assert.deepEqual([gone.code, /is no member of acme\n {2}try: svc member ls/.test(gone.stderr)], [2, true]);
});
