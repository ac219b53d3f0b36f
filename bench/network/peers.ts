import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { command, inNamespace } from '../../packages/engine/src/testing/command.ts';
import type { Internet } from '../../packages/engine/src/testing/internet.ts';
import { GuestProbe } from '../../test/engine/guest-probe.ts';

export const TCP_PORT = 7000;
export const HTTPS_PORT = 8443;
export const HTTPS_HOST = 'api.public.example';
const HTTPS_PEER = fileURLToPath(new URL('https-peer.ts', import.meta.url));
const HTTPS_CLIENT = fileURLToPath(new URL('https-client.ts', import.meta.url));

/** Somewhere that clients are started: the path of a network namespace. */
export interface Place {
  readonly namespace: string;
  /** The authority that the client trusts. */
  readonly authorityFile: string;
  /** The resolver for the name; none: the client knows the address. */
  readonly resolver?: string;
}

/** The servers of this benchmark on the test internet, their clients, and a namespace without svc in between. */
export class NetworkPeers implements AsyncDisposable {
  readonly internet: Internet;
  readonly folder: string;
  /** A veth to this host that forwards and masquerades, and nothing else. */
  readonly bare: Place;
  /** The authority of the HTTPS server, as PEM. */
  readonly certificate: string;
  readonly #undo: AsyncDisposableStack;

  private constructor(
    parts: Pick<NetworkPeers, 'internet' | 'folder' | 'bare' | 'certificate'>,
    undo: AsyncDisposableStack,
  ) {
    ({
      internet: this.internet,
      folder: this.folder,
      bare: this.bare,
      certificate: this.certificate,
    } = parts);
    this.#undo = undo;
  }

  static async start(internet: Internet): Promise<NetworkPeers> {
    await using undo = new AsyncDisposableStack();
    const folder = await mkdtemp(join(tmpdir(), 'svc-bench-network-'));
    undo.defer(() => rm(folder, { recursive: true, force: true }));
    const program = await GuestProbe.compile('../../bench/network/probe.c');
    await writeFile(join(folder, 'probe'), program.program, { mode: 0o755 });
    const { namespace, publicAddress } = internet;
    const serve = [join(folder, 'probe'), 'serve', publicAddress, String(TCP_PORT)];
    await firstLine(undo, inNamespace(namespace, ...serve));
    const https = [process.execPath, HTTPS_PEER, HTTPS_HOST, publicAddress, String(HTTPS_PORT)];
    const line = await firstLine(undo, inNamespace(namespace, ...https));
    const { certificate } = JSON.parse(line) as { certificate: string };
    const authorityFile = join(folder, 'server.pem');
    await writeFile(authorityFile, certificate);
    const bare = { namespace: await addBareNamespace(undo), authorityFile };
    return new NetworkPeers({ internet, folder, bare, certificate }, undo.move());
  }

  /** Microseconds of each exchange of 32 bytes over one connection. */
  async roundTrips(place: Place, count: number): Promise<number[]> {
    const words = ['turns', this.internet.publicAddress, String(TCP_PORT), String(count)];
    return await this.#numbers(place, join(this.folder, 'probe'), ...words);
  }

  /** Asks the resolver of the place for a name so many times, `window` at once. */
  async ask(place: Place, count: number, window: number): Promise<void> {
    const { resolver = this.internet.resolver } = place;
    await this.#numbers(place, join(this.folder, 'probe'), 'ask', resolver, String(count), String(window));
  }

  /** Requests over one connection. Milliseconds. */
  async requests(place: Place, count: number): Promise<number[]> {
    const { publicAddress } = this.internet;
    const where = [HTTPS_HOST, publicAddress, String(HTTPS_PORT), place.authorityFile, String(count)];
    const resolver = place.resolver === undefined ? [] : [place.resolver];
    return await this.#numbers(place, process.execPath, HTTPS_CLIENT, ...where, ...resolver);
  }

  /** MiB per second of one download by curl. */
  async download(place: Place, mib: number): Promise<number> {
    const resolve = `${HTTPS_HOST}:${HTTPS_PORT}:${this.internet.publicAddress}`;
    const url = `https://${HTTPS_HOST}:${HTTPS_PORT}/bulk/${mib}`;
    const quiet = ['-sS', '--fail', '-o', '/dev/null', '-w', '%{speed_download}'];
    const words = [...quiet, '--cacert', place.authorityFile, '--resolve', resolve, url];
    const [bytesPerSecond = 0] = await this.#numbers(place, 'curl', ...words);
    return bytesPerSecond / 1024 / 1024;
  }

  async #numbers({ namespace }: Place, ...line: [string, ...string[]]): Promise<number[]> {
    const [program, ...words] = inNamespace(namespace, ...line);
    return (await command(program, ...words)).trim().split('\n').map(Number);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#undo.disposeAsync();
  }
}

async function firstLine(undo: AsyncDisposableStack, line: [string, ...string[]]): Promise<string> {
  const child: ChildProcess = spawn(line[0], line.slice(1), { stdio: ['ignore', 'pipe', 'inherit'] });
  undo.defer(() => void child.kill('SIGKILL'));
  if (child.stdout === null) throw new Error('a pipe was asked for');
  const [text] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  return text;
}

/** Wired like a slot but without svc in between: the cost of a veth, forwarding and masquerading alone. */
async function addBareNamespace(undo: AsyncDisposableStack): Promise<string> {
  const id = randomBytes(3).toString('hex');
  const name = `svcbare-${id}`;
  const [own, gateway] = ['198.19.77.2', '198.19.77.1'].map((address) =>
    address.replace('77', String(process.pid % 255)),
  ) as [string, string];
  const link = `b${id}`;
  await command('ip', 'netns', 'add', name);
  undo.defer(() => command('ip', 'netns', 'delete', name).then(() => undefined));
  await command('ip', 'link', 'add', link, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name);
  undo.defer(() => command('ip', 'link', 'delete', link).then(() => undefined));
  await command('ip', 'address', 'add', `${gateway}/30`, 'dev', link);
  await command('ip', 'link', 'set', link, 'up');
  await command('ip', '-n', name, 'address', 'add', `${own}/30`, 'dev', 'eth0');
  await command('ip', '-n', name, 'link', 'set', 'eth0', 'up');
  await command('ip', '-n', name, 'route', 'add', 'default', 'via', gateway);
  await command('nft', `add table ip ${link}`);
  undo.defer(() => command('nft', `delete table ip ${link}`).then(() => undefined));
  await command('nft', `add chain ip ${link} out { type nat hook postrouting priority srcnat; }`);
  await command('nft', `add rule ip ${link} out ip saddr ${own} masquerade`);
  return `/run/netns/${name}`;
}
