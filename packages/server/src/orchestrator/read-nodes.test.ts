import assert from 'node:assert/strict';
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { TestAuthority } from '@svc/contract/testing';
import { pino } from 'pino';
import type { TlsFiles } from '@svc/engine/client';
import { EXIT } from '../host/exit-codes.ts';
import { StartError } from '../host/start-error.ts';
import { readNodes } from './read-nodes.ts';

const logger = pino({ level: 'silent' });
let authority: TestAuthority;
let files: TlsFiles;
let path = '';
before(async () => {
  authority = await TestAuthority.create();
  files = await authority.server();
  path = join(authority.folder, 'nodes.json');
});
after(() => authority[Symbol.asyncDispose]());

async function read(nodes: unknown) {
  await writeFile(path, typeof nodes === 'string' ? nodes : JSON.stringify({ nodes }));
  return readNodes(path, logger);
}

async function refuses(nodes: unknown, message: RegExp): Promise<void> {
  await assert.rejects(read(nodes), (error: unknown) => {
    assert.ok(error instanceof StartError && error.exitCode === EXIT.usage, String(error));
    assert.match(error.message, message);
    assert.ok(error.message.startsWith(`--nodes ${path}`));
    return true;
  });
}

test('nodes are reached over TLS, by name or address, or by the socket of this host', async () => {
  const nodes = await read([
    { name: 'a', url: 'https://node-a.example.com:7443', ...files },
    { name: 'b', url: 'https://[2001:db8::7]:443', ...files },
    { name: 'here', url: 'unix:/var/lib/svc/engine.sock' },
  ]);
  assert.partialDeepStrictEqual(nodes, [
    { name: 'a', address: { host: 'node-a.example.com', port: 7443 } },
    { name: 'b', address: { host: '2001:db8::7', port: 443 } },
    { name: 'here', address: { socketPath: '/var/lib/svc/engine.sock' } },
  ]);
});

test('every fault of the list is named, with the node that has it', async () => {
  const a = { name: 'a', url: 'https://a:7443', ...files };
  await refuses('{"nodes": [', /is not JSON: /);
  await refuses('[]', /must be \{"nodes": \[…\]\} with one entry or more$/);
  await refuses([], /with one entry or more/);
  await refuses([{ ...a, name: 'A b' }], /nodes\[0\]\.name must be up to 63 small letters/);
  await refuses(
    [a, { ...a, weight: 1 }],
    /nodes\[1\]\.weight is not a field.+nodes\[1\]\.name a is given twice/,
  );
  for (const url of ['http://a:7443', 'https://a', 'https://a:7443/x', 'https://u@a:7443', 'a:7443', 7443])
    await refuses([{ ...a, url }], /nodes\[0\]\.url must be https:\/\/HOST:PORT or unix:\/PATH/);
  await refuses([{ name: 'a', url: 'unix:engine.sock' }], /nodes\[0\]\.url must name an absolute path/);
  await refuses([{ ...a, url: 'unix:/x.sock' }], /nodes\[0\]\.key is for https:\/\/ alone/);
  await refuses([{ ...a, key: undefined }], /nodes\[0\]\.key must be the absolute path of a file/);
  await refuses([{ ...a, ca: 'ca.crt' }], /nodes\[0\]\.ca must be the absolute path of a file/);
  await refuses(
    [{ ...a, cert: '/nowhere.crt' }],
    /nodes\[0\]\.ca, cert, key cannot be used: \/nowhere\.crt cannot be read \(ENOENT\)/,
  );
  const { key } = await authority.server();
  await refuses([{ ...a, key }], /does not belong to the certificate/);
  await chmod(key, 0o604);
  await refuses([{ ...a, key }], /open to other users \(mode 0604\); chmod 600/);
});

test('a file that cannot be read is named, with the user that tried', () => {
  assert.throws(
    () => readNodes('/nowhere.json', logger),
    /--nodes \/nowhere\.json cannot be read by the server's user \d+: ENOENT/,
  );
});
