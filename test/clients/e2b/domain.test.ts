import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Sandbox } from '@e2b/code-interpreter';
import { E2bClients } from './start-e2b.ts';
import { TlsFront } from './tls-front.ts';

const DOMAIN = 'svc.test';

let front: TlsFront;
let clients: E2bClients;
let sandbox: Sandbox;
before(async () => {
  front = await TlsFront.start(DOMAIN);
  clients = await E2bClients.startWith(
    ['--preview-domain', `https://${DOMAIN}:${front.port}`],
    ['base', 'code'],
  );
  front.target = clients.server.url;
  sandbox = await Sandbox.create({ ...clients.options, timeoutMs: 600_000 });
});
after(async () => {
  await clients.destroy();
  await front.close();
});

/** Runs a program that knows the server by its domain alone. */
async function run(command: string, name: string, program: string): Promise<readonly string[]> {
  const { sandboxId: id } = sandbox;
  const names = ['api', `49983-${id}`, `49999-${id}`, `8000-${id}`].map((label) => `${label}.${DOMAIN}`);
  const hosts = join(clients.folder, 'hosts');
  await writeFile(hosts, `127.0.0.1 localhost ${names.join(' ')}\n`);
  const path = join(clients.folder, name);
  await writeFile(path, program);
  const variables = {
    E2B_DOMAIN: `${DOMAIN}:${front.port}`,
    E2B_API_KEY: clients.options.apiKey,
    NODE_EXTRA_CA_CERTS: front.authority,
    SSL_CERT_FILE: front.authority,
    SANDBOX: id,
  };
  // The names are known in a mount namespace of the program alone.
  const script = 'mount --bind "$1" /etc/hosts && exec "$2" "$3"';
  const words = ['--mount', 'sh', '-c', script, 'sh', hosts, command, path];
  const { code, stdout, stderr } = await clients.run('unshare', words, { variables });
  assert.equal(code, 0, stderr);
  return stdout.trim().split('\n');
}

test('by the domain alone the clients reach control, processes, files, code and signed links', async () => {
  const program = `
import { Sandbox } from '@e2b/code-interpreter'
const sandbox = await Sandbox.connect(process.env.SANDBOX)
console.log((await sandbox.commands.run('echo command')).stdout.trim())
await sandbox.files.write('/tmp/a', 'file')
console.log(await sandbox.files.read('/tmp/a'))
console.log((await sandbox.runCode('6 * 7')).text)
console.log(await (await fetch(await sandbox.downloadUrl('/tmp/a'))).text())
console.log(sandbox.getHost(8000))
console.log((await Sandbox.list().nextItems()).length)
`;
  const host = `8000-${sandbox.sandboxId}.${DOMAIN}:${front.port}`;
  assert.deepEqual(await run(process.execPath, 'program.mjs', program), [
    'command',
    'file',
    '42',
    'file',
    host,
    '1',
  ]);
});

test('so does Python', async () => {
  const program = `
import os
from e2b_code_interpreter import Sandbox
sandbox = Sandbox.connect(os.environ["SANDBOX"])
print(sandbox.commands.run("echo command").stdout.strip())
sandbox.files.write("/tmp/b", "file")
print(sandbox.files.read("/tmp/b"))
print(sandbox.run_code("6 * 7").text)
`;
  assert.deepEqual(await run('/usr/bin/python3', 'program.py', program), ['command', 'file', '42']);
});

test('a host of a sandbox that is not there is gone, and other names stay refused', async () => {
  const status = async (host: string) => {
    const { request } = await import('node:http');
    return await new Promise<number | undefined>((resolve, reject) => {
      const asked = request(`${clients.server.url}/health`, { headers: { host } }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      asked.on('error', reject);
      asked.end();
    });
  };
  assert.equal(await status(`49983-${sandbox.sandboxId}.${DOMAIN}`), 204);
  assert.equal(await status(`49983-${'0'.repeat(32)}.${DOMAIN}`), 502);
  assert.equal(await status(`other.${DOMAIN}`), 403);
  assert.equal(await status('api.elsewhere.test'), 403);
});
