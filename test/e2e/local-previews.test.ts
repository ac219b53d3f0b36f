import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { Client, Sandbox, SvcError } from '@svc/sdk';
import { BUSYBOX } from '../engine/start-engine.ts';
import { useCli } from './cli-line.ts';
import { Tmux } from './tmux.ts';

const SVC = resolve(import.meta.dirname, '../../svc');

const cli = useCli(undefined, { args: ['--dev'] });

async function serve(name: string): Promise<Sandbox> {
  const client = new Client({ apiUrl: cli.svc.server.url, apiKey: '' });
  const sandbox = await Sandbox.create({ client, image: BUSYBOX, name });
  await sandbox.shell('mkdir /www && echo it is here > /www/index.html');
  return sandbox;
}

const portOfServer = () => new URL(cli.svc.server.url).port;

test('a port of a sandbox is found below localhost by fetch, once something listens', async () => {
  const sandbox = await serve('shop');
  const url = await sandbox.url(8000);
  assert.equal(url, `http://8000-shop.localhost:${portOfServer()}/`);
  assert.equal((await fetch(url)).status, 502);
  const waiting = sandbox.waitForPort(8000);
  await sandbox.commands.startDetached('httpd', ['-f', '-p', '8000', '-h', '/www']);
  await waiting;
  assert.equal(await (await fetch(url)).text(), 'it is here\n');
});

test('a wait for a port fails when its time is over, and when the sandbox ends', async () => {
  const sandbox = await serve('idle');
  const tooShort = sandbox.waitForPort(9000, { timeoutMs: 300 });
  await assert.rejects(tooShort, (error) => SvcError.is(error, 'timeout'));
  const ended = assert.rejects(sandbox.waitForPort(9000), (error) =>
    SvcError.is(error, 'sandbox_not_running'),
  );
  await cli.svc.succeed(['stop', 'idle']);
  await ended;
});

test('svc open prints the address and opens it at a terminal; a public preview has an end', async () => {
  const { svc } = cli;
  const sandbox = await serve('web');
  const url = `http://3000-web.localhost:${portOfServer()}/`;
  assert.equal(await svc.succeed(['open', 'web', '3000']), `${url}\n`);
  assert.equal((await svc.json<{ url: string }>(['open', 'web', '3000'])).url, url);

  const endless = await svc.run(['open', '--public', 'web', '3000']);
  assert.deepEqual([endless.code, /--for 1h web 3000/.test(endless.stderr)], [2, true], endless.stderr);
  const shared = await svc.run(['open', '--public', '--for', '1h', 'web', '3000']);
  assert.match(shared.stdout, /^http:\/\/3000-[a-z0-9-]+\.localhost:\d+\/\n$/);
  assert.match(shared.stderr, /public until .*svc preview revoke web .*\n.*only this machine/);
  const [listed] = await sandbox.ports.list();
  assert.ok(listed?.access === 'public' && listed.expires_at !== null);
  assert.match(await svc.succeed(['preview', 'ls', 'web']), /none: public/);
  await svc.succeed(['preview', 'revoke', 'web', listed.id]);
  assert.deepEqual(await sandbox.ports.list(), []);

  const browser = join(svc.home, 'browser');
  await writeFile(browser, '#!/bin/sh\necho "$1" > "$HOME/opened"\n', { mode: 0o755 });
  await using tmux = await Tmux.open(svc.home, { ...svc.env, DISPLAY: ':9', BROWSER: browser });
  await tmux.line(`${SVC} open web 3000`);
  const opened = () => readFile(join(svc.home, 'opened'), 'utf8').catch(() => '');
  await waitUntil(async () => (await opened()) === `${url}\n`, { what: 'the browser is given the address' });
});
