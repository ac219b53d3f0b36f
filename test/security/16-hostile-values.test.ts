import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { REST_OPERATIONS, type RestOperation } from '@svc/contract/rest';
import { waitUntil } from '@svc/contract/testing';
import { showLines } from '@svc/contract/visible';
import { Sandbox } from '@svc/sdk';
import { useCli, type Outcome } from '../e2e/cli-line.ts';
import { forgottenPlaces, LINES, type Sent } from './hostile-values.ts';
import { HOSTILE_ARGS, makeHostileWorld, type HostileWorld } from './hostile-world.ts';
import { READS, shownBy } from './hostile-reads.ts';

/**
 * Hostile texts in every field that a member or code in a sandbox may choose, stored through REST and then listed: each is refused by
 * the name of its field, or shown as plain text. The fields come from the table of operations, so that a new field, or
 * a new list, makes these tests fail until it is added here.
 */
let token = '';
let world: HostileWorld;
const undo = new AsyncDisposableStack();
const cli = useCli(
  async (svc) => {
    const at = ['--path', svc.server.engine.folder];
    await svc.succeed([...at, 'org', 'create', 'acme', '--owner', 'ann@example.com']);
    token = (await svc.succeed([...at, 'token', 'create', '--user', 'ann@example.com'])).trim();
    world = await makeHostileWorld(svc.server, { slug: 'acme', owner: 'ann@example.com' }, undo);
  },
  { args: HOSTILE_ARGS },
);
after(() => undo.disposeAsync());

async function ann(...words: readonly string[]): Promise<Outcome> {
  const outcome = await cli.svc.run(words, { env: { ...cli.svc.env, SVC_API_KEY: token, SVC_ORG: 'acme' } });
  for (const text of [outcome.stdout, outcome.stderr]) {
    assert.equal(text, showLines(text), words.join(' '));
    assert.doesNotMatch(text, /^forged/m, words.join(' '));
  }
  return outcome;
}

test('no place where a caller may write a text is left out', () => {
  assert.deepEqual(forgottenPlaces(world.known), []);
});

test('a text that hides something is kept, or refused in words, by the name of its field', () => {
  const refused = world.sent.filter(({ message }) => message !== '');
  assert.deepEqual(
    refused.filter((sent) => !saysWhich(sent) || sent.message.includes('must match pattern')),
    [],
  );
  const kept = world.sent
    .filter(({ message }) => message === '')
    .map(({ place }) => place.replace(/ .*/, ''));
  assert.deepEqual([...new Set(kept)].toSorted(), KEPT);
});

test('of everything that can be read it is known where it is shown', () => {
  const reads = Object.entries<RestOperation>(REST_OPERATIONS).filter(([, { method }]) => method === 'GET');
  assert.deepEqual(Object.keys(READS).toSorted(), reads.map(([name]) => name).toSorted());
});

test('stored texts are plain text on a terminal, and programs get them unchanged', async () => {
  const { known, client } = world;
  await waitUntil(async () => (await ann('net', 'log', 'box')).stdout.includes('nnn.example'));
  const { stdout: log } = await ann('net', 'log', 'box');
  for (const name of [
    'x??[2j?]0;owned?',
    'a???gpj???',
    'a.example?is?allowed?by?rule?0',
    'b??cher',
    'xn--bcher-kva',
  ])
    assert.ok(log.includes(` ${name}.example is denied: `), log);
  assert.match((await ann('webhook', 'test', known.webhook_id)).stderr, /^ {2}\| forged<U\+202E>/m);
  for (const { at, isSeen } of shownBy('svc')) {
    const words = at
      .split(' ')
      .map((word) => word.replaceAll(/\{(\w+)\}/g, (_, id: keyof typeof known) => known[id]));
    const { stdout, stderr, code } = await ann(...words);
    assert.equal(code, 0, `${at}: ${stderr}`);
    if (isSeen) assert.match(stdout, /<U\+202E>|\\u202E/, at);
    if (words.includes('--format')) continue;
    const { stdout: json } = await ann(...words, '-o', 'json');
    assert.doesNotMatch(json, /<U\+/, at);
  }
  const sessions = await client.call('sessions.list', {});
  assert.ok(sessions.some(({ user_agent: agent }) => agent === 'agent\u009B8m\u00AD'));
  const { data } = await client.call('apiKeys.list', { query: { limit: 100 } });
  assert.ok(
    data.some(({ name }) => name.includes('\u202E')),
    'it is kept as it was sent',
  );
});

test('hostile values are text in messages of starts, explanations and copies, too', async () => {
  const { box, client } = world;
  const failed = await Array.fromAsync(Sandbox.list({ client }));
  const names = failed.filter(({ status }) => status === 'failed').map(({ name }) => name);
  assert.ok(names.length > 0, 'some cannot be started');
  assert.match((await ann('start', ...names)).stderr, /<U\+000A>forged<U\+202E>/);
  assert.match((await ann('ps', '-a', '--format', '{{.Failure}}')).stdout, /<U\+000A>forged<U\+202E>/);
  for (const name of names) await ann('logs', '-s', 'system', name);

  const host = { type: 'exact', value: 'a.example' } as const;
  const entry = { env_var: LINES, placeholder: 'p', value: 'v', allowed_hosts: [host] };
  await client.call('network.update', {
    params: { sandbox_id: box.id },
    body: { secrets: { entries: [entry] } },
  });
  assert.match((await ann('net', 'explain', 'box', 'a.example:443')).stdout, /x<U\+000A>forged/);

  await box.exec('python3', [
    '-c',
    'import os, sys\nos.mkdir("/linked")\nos.symlink("/", sys.argv[1])',
    `/linked/${LINES}`,
  ]);
  assert.match((await ann('cp', 'box:/linked', '.')).stderr, /^left out .*x<U\+000A>forged<U\+202E>/);
});

test('programs here write nothing else into their logs', async () => {
  const { folder } = cli.svc.server.engine;
  for (const name of ['server.log', 'engine.log']) {
    const text = await readFile(join(folder, name), 'utf8');
    assert.equal(text, showLines(text), name);
  }
  const { stdout } = await cli.svc.run(['--path', folder, 'server', 'logs', '-n', '1000']);
  assert.doesNotMatch(stdout, /^forged/m);
});

/** Operations that accept invisible characters; all others refuse them. */
const KEPT = [
  'apiKeys.create',
  'contexts.create',
  'files.change',
  'files.createLink',
  'files.makeFolder',
  'files.move',
  'identityProvider.put',
  'images.pull',
  'invites.create',
  'network.update',
  'organizations.create',
  'organizations.update',
  'processes.start',
  'registries.put',
  'sandboxes.create',
  'secrets.put',
  'snapshots.create',
  'sshKeys.create',
  'tokens.create',
  'users.update',
  'volumeFiles.copy',
  'volumeFiles.mkdir',
  'volumeFiles.rename',
  'volumes.create',
  'volumes.update',
  'webhooks.create',
  'webhooks.update',
];

/** Of what an address names. */
const NOT_FOUND = 404;
/** What kind of thing it is: all that goes with a kind that this server lacks is refused by it. */
const KINDS = new Set(['type', 'source']);

/** The field of the error is the place, or what the place is a part of, or the message quotes what was sent. */
function saysWhich({ place, text, message, field, status }: Sent): boolean {
  const names = place
    .replace(/^.* /, '')
    .split('.')
    .filter((name) => /^\w/.test(name));
  const said = field
    .replace(/^network\./, '')
    .replaceAll(/\[\d+\]/g, '')
    .split('.');
  const last = names.at(-1) ?? '';
  const isNamed =
    said.includes(last) || message.startsWith(`${last} `) || said.every((name) => names.includes(name));
  return isNamed || message.includes(text) || KINDS.has(said.at(-1) ?? '') || status === NOT_FOUND;
}
