import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, realpath } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { waitUntil } from '@svc/contract/testing';
import { inNamespace } from '../../packages/engine/src/testing/command.ts';
import { startInternet, type Internet } from '../../packages/engine/src/testing/internet.ts';
import type { Mirror } from '../../packages/engine/src/testing/serve-mirror.ts';
import { importChanged } from '../engine/image-fixture.ts';
import { TestServer } from './start-server.ts';

const PROGRAM = resolve(import.meta.dirname, '../../svc');
const HTTPS = fileURLToPath(new URL('../../packages/engine/src/testing/https-main.ts', import.meta.url));

/** A server whose sandboxes have a test internet, where every host speaks HTTPS. */
export interface Web {
  readonly internet: Internet;
  readonly server: TestServer;
  /** Of the authority that vouches for every host there. */
  readonly certificate: string;
  /** Requests that arrived: the name of the host, and all that was said. */
  readonly said: string[];
}

/** An image that has curl. */
export const WITH_CURL = 'svc/clients';

/** With a mirror its hosts serve that too. */
export async function startWeb(undo: AsyncDisposableStack, mirror?: Mirror): Promise<Web> {
  const internet = undo.use(await startInternet());
  const served = mirror === undefined ? [] : [mirror.folder, mirror.password];
  const [program, ...line] = inNamespace(internet.namespace, process.execPath, HTTPS, ...served);
  const child = spawn(program, line, { stdio: ['ignore', 'pipe', 'inherit'] });
  undo.defer(() => void child.kill('SIGKILL'));
  const said: string[] = [];
  let certificate = '';
  createInterface({ input: child.stdout }).on('line', (line) => {
    const report = JSON.parse(line) as {
      readonly said?: string;
      readonly name?: string;
      readonly certificate?: string;
    };
    if (report.certificate === undefined) said.push(`${report.name} ${report.said}`);
    else certificate = report.certificate;
  });
  const server = await TestServer.start({
    args: ['--dev'],
    engineArgs: ['--nameserver', internet.resolver],
  });
  undo.defer(() => server.destroy());
  await importChanged(server.engine, WITH_CURL, (root) => copyProgram(root, '/usr/bin/curl'));
  await waitUntil(() => certificate !== '');
  return { internet, server, certificate, said };
}

/** With the libraries that it is linked against. */
async function copyProgram(root: string, program: string): Promise<void> {
  const { stdout } = await promisify(execFile)('ldd', [program]);
  const libraries = [...stdout.matchAll(/\/\S+\.so\S*/g)].map(([library]) => library);
  for (const file of [program, ...libraries]) {
    await mkdir(dirname(join(root, file)), { recursive: true });
    await cp(await realpath(file), join(root, file));
  }
}

/** The command line of a user of the server. */
export async function svc(server: TestServer, input: string, ...parameters: readonly string[]) {
  const env = { PATH: process.env['PATH'], HOME: '/nonexistent', SVC_API_URL: server.url };
  const child = spawn(PROGRAM, parameters, { env, stdio: ['pipe', 'pipe', 'pipe'] });
  // One that is refused reads nothing.
  child.stdin.on('error', () => undefined);
  child.stdin.end(input);
  const [output, complaint] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  return { code: child.exitCode, output: output.trim(), complaint };
}
