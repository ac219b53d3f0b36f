import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { request } from 'node:http';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { Sandbox } from 'e2b';
import { waitUntil } from '@svc/contract/testing';
import { E2bClients } from './start-e2b.ts';

const MANY = 30;

let clients: E2bClients;
let sandbox: Sandbox;
let envd: Readonly<Record<string, string>>;
before(async () => {
  clients = await E2bClients.start('base');
  sandbox = await Sandbox.create({ ...clients.options, timeoutMs: 600_000 });
  const { sandboxId } = sandbox;
  const response = await fetch(`${clients.server.url}/v2/sandboxes/${sandboxId}/connect`, {
    method: 'POST',
    headers: { 'x-api-key': clients.options.apiKey, 'content-type': 'application/json' },
    body: '{}',
  });
  const { envdAccessToken } = (await response.json()) as { readonly envdAccessToken: string };
  envd = { 'e2b-sandbox-id': sandboxId, 'e2b-sandbox-port': '49983', 'x-access-token': envdAccessToken };
});
after(() => clients.destroy());

const post = async (path: string, body: string | Buffer | FormData, headers: Record<string, string> = {}) =>
  await fetch(`${clients.server.url}${path}`, { method: 'POST', headers: { ...envd, ...headers }, body });

const stream = async (
  path: string,
  body: string | Buffer | FormData,
  headers: Record<string, string> = {},
) => {
  const response = await post(path, body, { 'content-type': 'application/connect+json', ...headers });
  const bytes = Buffer.from(await response.arrayBuffer());
  // The last message, whose flag says that it is the end.
  const at = bytes.lastIndexOf(Buffer.from([2, 0, 0]));
  return { status: response.status, end: JSON.parse(bytes.subarray(at + 5).toString()) };
};

const codeOf = async (response: Response) => ((await response.json()) as { readonly code: unknown }).code;

const envelope = (text: string, flags = 0) => {
  const head = Buffer.alloc(5);
  head.writeUInt8(flags, 0);
  head.writeUInt32BE(Buffer.byteLength(text), 1);
  return Buffer.concat([head, Buffer.from(text)]);
};

test('without the token of the sandbox nothing inside is reached, and a sandbox that is not there is gone', async () => {
  for (const [path, type] of [
    ['/filesystem.Filesystem/Stat', 'application/json'],
    ['/process.Process/Start', 'application/connect+json'],
    ['/execute', 'application/json'],
  ] as const) {
    const port = path === '/execute' ? '49999' : '49983';
    const headers = { 'content-type': type, 'e2b-sandbox-port': port };
    for (const token of ['', 'wrong', `${envd['x-access-token']}0`]) {
      const refused = await post(path, '{}', { ...headers, 'x-access-token': token });
      assert.equal(refused.status, 401, path);
    }
    const gone = await post(path, '{}', { ...headers, 'e2b-sandbox-id': '0'.repeat(32) });
    assert.deepEqual(
      [gone.status, await gone.json()],
      [502, { sandboxId: '0'.repeat(32), code: 502, message: 'The sandbox was not found' }],
    );
  }
  const contexts = await fetch(`${clients.server.url}/contexts`, {
    headers: { 'e2b-sandbox-id': sandbox.sandboxId, 'e2b-sandbox-port': '49999' },
  });
  assert.equal(contexts.status, 401);
});

test('malformed messages are refused in the words of Connect', async () => {
  const start = '/process.Process/Start';
  const bodies: readonly (readonly [Buffer, string])[] = [
    [Buffer.alloc(0), 'invalid_argument'],
    [Buffer.from([0, 0]), 'invalid_argument'],
    [envelope('{').subarray(0, 5), 'invalid_argument'],
    [envelope('{'), 'invalid_argument'],
    [envelope('[]'), 'invalid_argument'],
    [envelope('{"process":7}'), 'invalid_argument'],
    [envelope('{}', 0x40), 'invalid_argument'],
    [envelope('{}', 1), 'unimplemented'],
    [Buffer.from([0, 0xff, 0xff, 0xff, 0xff]), 'resource_exhausted'],
  ];
  for (const [body, code] of bodies) {
    const { status, end } = await stream(start, body);
    assert.deepEqual([status, end.error.code], [200, code], body.toString('hex'));
  }
  const json = { 'content-type': 'application/json' };
  for (const body of ['', '{', '7', '{"path":7}']) {
    const answer = await post('/filesystem.Filesystem/Stat', body, json);
    assert.deepEqual([answer.status, await codeOf(answer)], [400, 'invalid_argument'], body);
  }
  const missing = await post(
    '/process.Process/SendSignal',
    '{"process":{"pid":4000000},"signal":"SIGNAL_SIGKILL"}',
    json,
  );
  assert.deepEqual([missing.status, await codeOf(missing)], [404, 'not_found']);
});

test('large bodies are refused where they are held in memory, and streamed to the disk where they are files', async () => {
  const large = Buffer.alloc(24 * 2 ** 20, 'x');
  const json = { 'content-type': 'application/json' };
  const refused = await post('/filesystem.Filesystem/Stat', large, json);
  assert.deepEqual([refused.status, await codeOf(refused)], [429, 'resource_exhausted']);
  const control = await fetch(`${clients.server.url}/v2/sandboxes`, {
    method: 'POST',
    headers: { 'x-api-key': clients.options.apiKey, ...json },
    body: large,
  });
  assert.deepEqual([control.status, await codeOf(control)], [413, 413]);
  const written = await post('/files?path=/tmp/large', large, { 'content-type': 'application/octet-stream' });
  assert.equal(written.status, 200, await written.text());
  assert.equal((await sandbox.files.getInfo('/tmp/large')).size, large.length);
  const twice = new FormData();
  for (const text of ['a', 'b']) twice.append('file', new Blob([text]), '/tmp/same');
  assert.equal((await post('/files', twice)).status, 400);
  const form = { 'content-type': 'multipart/form-data; boundary=x' };
  assert.equal((await post('/files', '--x\r\nnothing', form)).status, 400);
  assert.equal((await post('/files?path=/tmp/a', 'x', { 'content-encoding': 'br' })).status, 400);
});

test('a body of a gigabyte goes to the disk of the sandbox, and little of it through memory', async () => {
  const chunk = Buffer.alloc(2 ** 20, 'x');
  const before = await highestMemory();
  const { status, body } = await new Promise<{ readonly status: number; readonly body: string }>(
    (resolve, reject) => {
      const upload = request(
        `${clients.server.url}/files?path=/home/user/giga`,
        { method: 'POST', headers: { ...envd, 'content-type': 'application/octet-stream' } },
        (answer) =>
          void text(answer).then((body) => resolve({ status: answer.statusCode ?? 0, body }), reject),
      );
      upload.on('error', reject);
      Readable.from(
        (function* () {
          for (let n = 0; n < 1024; n++) yield chunk;
        })(),
      ).pipe(upload);
    },
  );
  assert.equal(status, 200, body);
  assert.equal((await sandbox.files.getInfo('/home/user/giga')).size, 2 ** 30);
  assert.ok((await highestMemory()) - before < 200 * 2 ** 20, 'the server held much of it');
  await sandbox.files.remove('/home/user/giga');
});

/** Of the web-facing process, in bytes. */
async function highestMemory(): Promise<number> {
  const status = await readFile(`/proc/${await clients.server.webPid()}/status`, 'utf8');
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}

test('an upload that breaks off leaves no file, and the one that it was to replace', async () => {
  await sandbox.files.write('/tmp/broken/half', 'whole');
  await new Promise<void>((resolve) => {
    const upload = request(`${clients.server.url}/files?path=/tmp/broken/half`, {
      method: 'POST',
      headers: { ...envd, 'content-type': 'application/octet-stream', 'content-length': '1000000' },
    });
    upload.on('error', () => resolve());
    upload.write(Buffer.alloc(1000), () => upload.destroy(new Error('the client is gone')));
  });
  const left = async () => (await sandbox.commands.run('ls -A /tmp/broken')).stdout;
  await waitUntil(async () => (await left()) === 'half\n', { what: 'nothing is left of it' });
  assert.equal(await sandbox.files.read('/tmp/broken/half'), 'whole');
  assert.equal((await sandbox.commands.run('echo fine')).stdout, 'fine\n');
});

test('a client that goes away leaves its command running', async () => {
  const command = await sandbox.commands.run('sleep 4321', { background: true, timeoutMs: 0 });
  await command.disconnect();
  assert.ok((await sandbox.commands.list()).some(({ pid }) => pid === command.pid));
  assert.equal(await sandbox.commands.kill(command.pid), true);
});

test('a client that gives up a create leaves no sandbox', async () => {
  const body = JSON.stringify({ templateID: 'base', metadata: { of: 'gone' } });
  await new Promise<void>((resolve) => {
    const create = request(`${clients.server.url}/v2/sandboxes`, {
      method: 'POST',
      headers: { 'x-api-key': clients.options.apiKey, 'content-type': 'application/json' },
    });
    create.on('error', () => resolve());
    create.on('close', () => resolve());
    create.on('finish', () => setImmediate(() => create.destroy()));
    create.end(body);
  });
  const query = { metadata: { of: 'gone' } };
  await waitUntil(
    async () => {
      const response = await fetch(
        `${clients.server.url}/v1/sandboxes?labels=${encodeURIComponent('{"of":"gone"}')}`,
        {
          headers: { authorization: `Bearer ${clients.options.apiKey}` },
        },
      );
      return ((await response.json()) as { readonly data: readonly unknown[] }).data.length === 0;
    },
    { what: 'no sandbox is left' },
  );
  assert.deepEqual(await Sandbox.list({ ...clients.options, query }).nextItems(), []);
});

test('many sandboxes side by side answer, each for itself, and nothing is left of them', async () => {
  const options = { ...clients.options, metadata: { of: 'many' } };
  const said = await Promise.all(
    Array.from({ length: MANY }, async (_, n) => {
      const box = await Sandbox.create(options);
      const { stdout } = await box.commands.run(`echo ${n}`);
      await box.kill();
      return stdout;
    }),
  );
  assert.deepEqual(
    said,
    Array.from({ length: MANY }, (_, n) => `${n}\n`),
  );
  const left = await Sandbox.list({ ...options, query: { metadata: { of: 'many' } } }).nextItems();
  assert.deepEqual(left, []);
});

test('changes are in the audit log, with the key that got the token as their actor', async () => {
  await sandbox.commands.run('echo audited-command');
  await sandbox.files.write('/tmp/audited-file', 'four');
  await sandbox.files.makeDir('/tmp/audited-folder');
  await sandbox.files.rename('/tmp/audited-file', '/tmp/audited-moved');
  await sandbox.files.remove('/tmp/audited-folder');
  const find = async () => {
    const response = await fetch(`${clients.server.url}/v1/events?limit=100`, {
      headers: { authorization: `Bearer ${clients.options.apiKey}` },
    });
    const { data } = (await response.json()) as { readonly data: readonly Recorded[] };
    return data.filter(({ payload }) => JSON.stringify(payload).includes('audited'));
  };
  // The command is recorded beside its start.
  await waitUntil(async () => (await find()).length === 5, { what: 'all are recorded' });
  const found = (await find()).toReversed();
  assert.deepEqual(new Set(found.map(({ actor }) => actor['kind'])), new Set(['api_key']));
  assert.deepEqual(new Set(found.map(({ event_type: type }) => type)).size, 5);
  const written = found.find(({ event_type: type }) => type === 'file_written')?.payload;
  assert.deepEqual([written?.['path'], written?.['bytes']], ['/tmp/audited-file', 4]);
});

interface Recorded {
  readonly event_type: string;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly actor: Readonly<Record<string, unknown>>;
}
