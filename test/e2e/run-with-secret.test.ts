import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, realpath, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Client, Events, Sandbox } from '@svc/sdk';
import { waitUntil } from '@svc/contract/testing';
import { inNamespace } from '../../packages/engine/src/testing/command.ts';
import { startInternet } from '../../packages/engine/src/testing/internet.ts';
import { importChanged } from '../engine/image-fixture.ts';
import { CLASSES } from '../engine/sandbox-fixture.ts';
import { TestServer } from './start-server.ts';

const PROGRAM = resolve(import.meta.dirname, '../../svc');
const HTTPS = fileURLToPath(new URL('../../packages/engine/src/testing/https-main.ts', import.meta.url));
const IMAGE = 'svc/clients';
const [API, EVIL] = ['api.public.example', 'evil.public.example'];
const [VALUE, NEXT_VALUE] = ['sk-live-4711-real', 'sk-live-0815-next'];

const undo = new AsyncDisposableStack();
let server: TestServer;
let client: Client;
let certificate = '';
let authority = '';
const said: string[] = [];

before(async () => {
  const internet = undo.use(await startInternet());
  const [program, ...line] = inNamespace(internet.namespace, process.execPath, HTTPS);
  const child = spawn(program, line, { stdio: ['ignore', 'pipe', 'inherit'] });
  undo.defer(() => void child.kill('SIGKILL'));
  createInterface({ input: child.stdout }).on('line', (news) => {
    const told = JSON.parse(news) as {
      readonly said?: string;
      readonly name?: string;
      readonly certificate?: string;
    };
    if (told.certificate === undefined) said.push(`${told.name} ${told.said}`);
    else certificate = told.certificate;
  });
  server = await TestServer.start({ args: ['--dev'], engineArgs: ['--nameserver', internet.resolver] });
  undo.defer(() => server.destroy());
  client = new Client({ apiUrl: server.url });
  await importChanged(server.engine, IMAGE, (root) => copyProgram(root, '/usr/bin/curl'));
  await waitUntil(() => certificate !== '');
  authority = join(server.engine.folder, 'authority.pem');
  await writeFile(authority, certificate);
});
after(() => undo.disposeAsync());

/** With the libraries that it is linked against. */
async function copyProgram(root: string, program: string): Promise<void> {
  const { stdout } = await promisify(execFile)('ldd', [program]);
  const libraries = [...stdout.matchAll(/\/\S+\.so\S*/g)].map(([library]) => library);
  for (const file of [program, ...libraries]) {
    await mkdir(dirname(join(root, file)), { recursive: true });
    await cp(await realpath(file), join(root, file));
  }
}

async function svc(input: string, ...parameters: readonly string[]) {
  const env = { PATH: process.env['PATH'], HOME: '/nonexistent', SVC_API_URL: server.url };
  const child = spawn(PROGRAM, parameters, { env, stdio: ['pipe', 'pipe', 'pipe'] });
  child.stdin.end(input);
  const [output, complaint] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  return { code: child.exitCode, output: output.trim(), complaint };
}

for (const isolation of CLASSES)
  test(`svc run --secret on class ${isolation}: the host has the value, the sandbox never, and a new one at once`, async () => {
    const name = `with-secret-${isolation}`;
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
      IMAGE,
      'sleep',
      '600',
    );
    assert.equal(made.code, 0, made.complaint);
    const sandbox = await Sandbox.connect(name, { client });
    await sandbox.network.update({ tls: { upstream_ca_cert: [certificate] } });
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
