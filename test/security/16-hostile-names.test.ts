import assert from 'node:assert/strict';
import { test } from 'node:test';
import { showLine } from '@svc/contract/visible';
import { BUSYBOX } from '../engine/start-engine.ts';
import { useCli, type Outcome } from '../e2e/cli-line.ts';

/**
 * Names, labels, commands and texts that a member, or a client with a key, chose, in front of an operator who uses `svc` in a terminal:
 * they are text there. Nothing of them moves the cursor, renames the window, makes a line or turns letters round.
 */
const HOSTILE = 'x\nforged\u202E\u001B]0;owned\u0007\u001B[2J\u009B8m\u007F\u2066';
const SHOWN = showLine(HOSTILE);
const LONG = 'n'.repeat(10_000);
// oxlint-disable-next-line no-control-regex -- these are what is looked for
const RAW = /[\u0000-\u0009\u000B-\u001F\u007F-\u009F\u202A-\u202E\u2066-\u2069]|^forged/m;

let token = '';
const cli = useCli(async (svc) => {
  const at = ['--path', svc.server.engine.folder];
  const owner = ['--owner', 'ann@example.com', '--display-name', HOSTILE];
  assertText(await svc.run([...at, 'org', 'create', 'acme', ...owner]));
  await svc.run([...at, 'org', 'create', 'acme', '--owner', 'ann@example.com']);
  token = (await svc.succeed([...at, 'token', 'create', '--user', 'ann@example.com'])).trim();
});

async function ann(...words: readonly string[]): Promise<Outcome> {
  const outcome = await cli.svc.run(words, { env: { ...cli.svc.env, SVC_API_KEY: token, SVC_ORG: 'acme' } });
  assertText(outcome, words);
  return outcome;
}

function assertText({ stdout, stderr }: Outcome, words: readonly string[] = []): void {
  assert.doesNotMatch(stdout, RAW, JSON.stringify([words, stdout]));
  assert.doesNotMatch(stderr, RAW, JSON.stringify([words, stderr]));
}

test('names chosen by others are plain text on a terminal', async () => {
  const sleep = ['sh', '-c', 'sleep 1000', HOSTILE];
  const run = ['run', '-d', '--name', 'box', '-l', `team=${HOSTILE}`, '-e', `A=${HOSTILE}`, BUSYBOX];
  const made = await ann(...run, ...sleep);
  assert.equal(made.code, 0, made.stderr);
  assert.equal((await ann('exec', '-d', 'box', ...sleep)).code, 0);
  assert.equal((await ann('exec', 'box', `no-${HOSTILE}`)).code, 127);
  // Some of these the server refuses; what it says then quotes them.
  for (const name of [HOSTILE, LONG]) {
    await ann('run', '-d', '--name', name, BUSYBOX);
    await ann('run', '-d', `${BUSYBOX}${name}`);
    await ann('apikey', 'create', '--name', name);
    await ann('token', 'create', '--name', name);
    await ann('volume', 'create', name);
    await ann('volume', 'create', '-l', `a=${name}`, `v${name.length}`);
    await ann('snapshot', 'create', 'box', name);
    await ann('member', 'invite', `${name}@example.com`);
    await ann('webhook', 'create', 'https://example.com/', '--description', name);
    await ann('cp', `box:/${name}`, '.');
    await ann('inspect', name);
    await ann('net', 'explain', 'box', name.replace('\n', ''));
  }
  const lists =
    'ps|ps -a|apikey ls|token ls|volume ls|snapshot ls|member ls|member ls --invites|webhook ls|org ls|process ls box';
  const others =
    'inspect box|events|image ls|secret ls|net log box|logs -s system box|stats --no-stream|usage|quota|info';
  for (const line of `${lists}|${others}`.split('|')) {
    const words = line.split(' ');
    await ann(...words);
    await ann(...words, '-o', 'json');
  }
});

test('hostile characters are shown escaped, and programs get them unchanged', async () => {
  assert.ok((await ann('process', 'ls', 'box')).stdout.includes(SHOWN.slice(0, 16)));
  assert.ok((await ann('ps', '--format', '{{.Name}} {{.Labels}}')).stdout.includes(`box team=${SHOWN}\n`));
  assert.ok((await ann('ps', '--format', 'table {{.Name}}\t{{.Labels}}')).stdout.includes(`team=${SHOWN}\n`));
  for (const words of [
    ['ps', '-o', 'json'],
    ['ps', '--format', 'json'],
  ]) {
    const { stdout } = await ann(...words);
    const [box] = [JSON.parse(stdout) as unknown].flat() as { spec: { labels: object } }[];
    assert.deepEqual(box?.spec.labels, { team: HOSTILE });
  }
  const events = (await ann('events', '-n', '1000', '-o', 'json')).stdout.trimEnd().split('\n');
  assert.ok(events.every((line) => typeof JSON.parse(line) === 'object'));
});
