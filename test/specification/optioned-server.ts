import { once } from 'node:events';
import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLocalApiKey, createLocalOrganization } from '@svc/server/local';
import { freePort } from '../../packages/server/src/testing/free-port.ts';
import type { Ground, Json } from './ground.ts';

/** A server without an engine that was started with many options, as an operator does it. */
export interface OptionedServer {
  readonly folder: string;
  readonly url: string;
  readonly port: number;
  readonly sshPort: number;
  readonly secretsKey: string;
  readonly maxBodyBytes: number;
  /** What a request for health with these headers, or a cheap one, is answered with. */
  readonly statusFor: (headers: Readonly<Record<string, string>>) => Promise<number>;
  readonly rest: (path: string) => Promise<Json>;
  readonly headersOf: (path: string) => Promise<Headers>;
}

const NO_ENGINE = '/nowhere/engine.sock';
const MAX_BODY_BYTES = 5000;
const PLANS = { plans: [{ name: 'tiny', is_default: true }] };

export async function optionedServer(ground: Ground): Promise<OptionedServer> {
  return await ground.shared('optioned', () => start(ground));
}

async function start(ground: Ground): Promise<OptionedServer> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-optioned-'));
  ground.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }));
  await chmod(folder, 0o711);
  // Of the user that the server becomes, who makes a file in it.
  await mkdir(join(folder, 'keys'));
  await chown(join(folder, 'keys'), 64_555, 64_555);
  const [plans, secretsKey] = [join(folder, 'plans.json'), join(folder, 'keys/own.key')];
  await writeFile(plans, JSON.stringify(PLANS), { mode: 0o644 });
  const [port, sshPort] = [await freePort(), await freePort()];
  const at = ['--path', folder];
  ground.defer(async () => void (await ground.svc(['server', 'stop', ...at])));
  const listen = ['--host', '127.0.0.1', '--port', String(port), '--ssh-port', String(sshPort)];
  const engine = ['--engine-socket', NO_ENGINE, '--run-as', '64555:64555', '--log-level', 'warn'];
  const callers = ['--allowed-host', 'box.example', '--cors-origin', 'https://page.example'];
  const limits = ['--max-body-bytes', String(MAX_BODY_BYTES), '--rate-limit', '1000'];
  const files = ['--plans', plans, '--secrets-key', secretsKey];
  await ground.svc([
    'server',
    'start',
    '--detach',
    ...at,
    ...listen,
    ...engine,
    ...callers,
    ...limits,
    ...files,
  ]);
  const url = `http://127.0.0.1:${port}`;
  await createLocalOrganization({ dataFolder: folder }, { slug: 'shop', owner: 'owner@shop.example' });
  const { secret } = await createLocalApiKey({ dataFolder: folder }, 'shop', { name: 'proof' });
  const get = (path: string) => fetch(`${url}/v1${path}`, { headers: { authorization: `Bearer ${secret}` } });
  return {
    folder,
    url,
    port,
    sshPort,
    secretsKey,
    maxBodyBytes: MAX_BODY_BYTES,
    statusFor: (headers) => statusOf(port, headers),
    rest: async (path) => await (await get(path)).json(),
    headersOf: async (path) => (await get(path)).headers,
  };
}

/** The status of a request for a public document; `fetch` would not let the Host header be changed. */
async function statusOf(port: number, headers: Readonly<Record<string, string>>): Promise<number> {
  const asked = request({ host: '127.0.0.1', port, path: '/openapi.json', headers });
  asked.end();
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  answer.resume();
  return answer.statusCode ?? 0;
}
