import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { waitUntil } from '@svc/contract/testing';
import { command, inNamespace } from './command.ts';

/** A simulated internet in a network namespace, so that no packet of a test leaves the machine. */
export interface Internet extends AsyncDisposable {
  /** The host's end of the link, an address that looks public. */
  readonly hostAddress: string;
  readonly hostIpv6Address: string;
  readonly hostInterface: string;
  /** The other end; resolves names on port 53. */
  readonly resolver: string;
  readonly publicAddress: string;
  readonly privateAddress: string;
  readonly metadataAddress: string;
  readonly ipv6Address: string;
  /** Routed behind it, like `publicAddress`. */
  readonly publicIpv6Address: string;
  /** Addresses that no sandbox should reach: of a cloud's metadata, and two that embed IPv4. Every run has the same. */
  readonly closedIpv6Addresses: readonly string[];
  /** The printed lines of received UDP packets. */
  readonly received: readonly string[];
  readonly namespace: string;
}

const MAIN = fileURLToPath(new URL('internet-main.ts', import.meta.url));

export async function startInternet(): Promise<Internet> {
  await using undo = new AsyncDisposableStack();
  const { part, name } = await claimPart();
  undo.defer(() => ip('netns', 'delete', name));
  const addresses = addressesOf(part);
  const hostInterface = `n${randomBytes(3).toString('hex')}`;
  await ip('link', 'add', hostInterface, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name);
  undo.defer(() => ip('link', 'delete', hostInterface));
  await configureFarEnd(name, addresses);

  const namespace = `/run/netns/${name}`;
  const { resolver, publicAddress, privateAddress, publicIpv6Address } = addresses;
  const known = [resolver, publicAddress, privateAddress, publicIpv6Address];
  const line = inNamespace(namespace, process.execPath, MAIN, ...known);
  const child = spawn(line[0], line.slice(1), { stdio: ['ignore', 'pipe', 'inherit'] });
  undo.defer(() => void child.kill('SIGKILL'));
  const received: string[] = [];
  createInterface({ input: child.stdout }).on('line', (text) => received.push(text));
  await waitUntil(() => received.includes('ready'));
  // The route is up only while the namespace answers: packets to addresses that all runs share could belong to another run.
  await configureHostEnd(hostInterface, addresses);
  undo.defer(() => ip('link', 'set', hostInterface, 'down'));
  const kept = undo.move();
  return {
    ...addresses,
    hostInterface,
    namespace,
    received,
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/** The number of networks of four addresses below, except for the last. */
const PARTS = 63;

/** A range of addresses that no concurrent test has: the creator of the namespace with its name owns it. */
async function claimPart(): Promise<{ readonly part: number; readonly name: string }> {
  const failures: unknown[] = [];
  for (let attempt = 0; attempt < PARTS; attempt++) {
    const part = (process.pid + attempt) % PARTS;
    const name = `svcnet-${part}`;
    try {
      await ip('netns', 'add', name);
      return { part, name };
    } catch (error) {
      failures.push(error);
    }
  }
  throw new AggregateError(failures.slice(-1), 'no namespace could be made for the internet of a test');
}

type Addresses = ReturnType<typeof addressesOf>;

function addressesOf(part: number) {
  return {
    hostAddress: `203.0.113.${part * 4 + 1}`,
    hostIpv6Address: `2001:db8:77:${part + 1}::1`,
    resolver: `203.0.113.${part * 4 + 2}`,
    // Not a range for documentation: those are refused. This host's route to it leads into the namespace.
    publicAddress: `93.184.215.${part + 1}`,
    privateAddress: `10.77.0.${part + 1}`,
    metadataAddress: '169.254.169.254',
    // The metadata address is the same in every run; the run that has the route answers for all.
    metric: String(7 + part),
    ipv6Address: `2001:db8:77:${part + 1}::2`,
    publicIpv6Address: `2a00:77:${part + 1}::1`,
    closedIpv6Addresses: ['fd00:ec2::254', '64:ff9b::808:808', '2002:808:808::1'],
  };
}

async function configureHostEnd(hostInterface: string, addresses: Addresses): Promise<void> {
  await ip('address', 'add', `${addresses.hostAddress}/30`, 'dev', hostInterface);
  await ip('-6', 'address', 'add', `${addresses.hostIpv6Address}/64`, 'dev', hostInterface, 'nodad');
  await ip('link', 'set', hostInterface, 'up');
  for (const far of [addresses.publicAddress, addresses.privateAddress, addresses.metadataAddress]) {
    await ip('route', 'add', far, 'via', addresses.resolver, 'metric', addresses.metric);
  }
  const { publicIpv6Address, closedIpv6Addresses, ipv6Address, metric } = addresses;
  for (const far of [publicIpv6Address, ...closedIpv6Addresses]) {
    const way = ['via', ipv6Address, 'dev', hostInterface, 'metric', metric];
    await ip('-6', 'route', 'add', far, ...way);
  }
}

async function configureFarEnd(name: string, addresses: Addresses): Promise<void> {
  const { resolver, publicAddress, privateAddress, metadataAddress } = addresses;
  for (const own of [`${resolver}/30`, publicAddress, privateAddress, metadataAddress]) {
    await ip('-n', name, 'address', 'add', own, 'dev', 'eth0');
  }
  const single = [addresses.publicIpv6Address, ...addresses.closedIpv6Addresses];
  for (const own of [`${addresses.ipv6Address}/64`, ...single.map((address) => `${address}/128`)])
    await ip('-n', name, '-6', 'address', 'add', own, 'dev', 'eth0', 'nodad');
  await ip('-n', name, 'link', 'set', 'eth0', 'up');
  await ip('-n', name, 'link', 'set', 'lo', 'up');
  await ip('-n', name, 'route', 'add', 'default', 'via', addresses.hostAddress);
  await ip('-n', name, '-6', 'route', 'add', 'default', 'via', addresses.hostIpv6Address, 'dev', 'eth0');
}

async function ip(...parameters: readonly string[]): Promise<void> {
  await command('ip', ...parameters);
}
