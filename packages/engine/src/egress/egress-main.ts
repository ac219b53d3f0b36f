/**
 * The egress process: it alone parses what sandboxes send to our resolver and our proxy. It gives up all privileges before it opens
 * a socket, and goes on answering while the engine is away, so that a restart of the engine costs sandboxes nothing.
 */
import { flushCompileCache } from 'node:module';
import { DnsForwarder } from './dns-forwarder.ts';
import { listenForDns } from './dns-listeners.ts';
import { cidr } from '../policy/address.ts';
import { resolvePolicy } from '../policy/resolve-policy.ts';
import {
  LISTENER_DESCRIPTOR,
  type EgressConfig,
  type EgressReport,
  type ProxyOrder,
} from './egress-messages.ts';
import { ProxiedSandboxes } from './proxied-sandboxes.ts';
import type { PolicySource } from './proxy/policy-rules.ts';
import { listenTransparently } from './proxy/transparent-listener.ts';
import { TransparentProxy } from './proxy/transparent-proxy.ts';
import { fixedResolvers, hostResolvers } from './resolvers.ts';

const RESOLV_CONF = '/etc/resolv.conf';
/** How long a process that nobody supervises or asks any more stays. */
const ABANDONED_AFTER_MS = 10 * 60_000;

process.on('uncaughtException', (error) => {
  report({ kind: 'failed', reason: error.stack ?? error.message }, () => process.exit(1));
});
// The engine holds the other end; when it is gone there is nobody to write to.
process.stderr.on('error', () => undefined);
process.once('message', (config) => void serve(config as EgressConfig)); // Our own parent sent it.

async function serve(config: EgressConfig): Promise<void> {
  // Now or never: later on we may not, and at the end we are killed.
  flushCompileCache();
  dropPrivileges(config.hostId);
  const resolvers = config.resolvers === null ? hostResolvers(RESOLV_CONF) : fixedResolvers(config.resolvers);
  const abandoned = setTimeout(() => {
    if (process.connected) abandoned.refresh();
    else process.exit(0);
  }, ABANDONED_AFTER_MS);
  const listeners = await listenForDns(new DnsForwarder(resolvers), config.listenAddress, () =>
    abandoned.refresh(),
  );
  const proxyPort = await startProxy(config.listenAddress);
  report({ kind: 'listening', port: listeners.port, proxyPort }, () => undefined);
}

async function startProxy(gateway: string): Promise<number> {
  const sandboxes = new ProxiedSandboxes({
    policies: noPolicies(gateway),
    onRefusal: () => undefined,
    onViolation: (client, violation) => report({ kind: 'violation', client, violation }, () => undefined),
  });
  const proxy = new TransparentProxy({
    find: (client) => sandboxes.find(client),
    onRefusal: () => undefined,
  });
  // Our own parent sent it; the first message was the configuration.
  process.on('message', ({ kind, client, settings }: ProxyOrder) => {
    if (kind !== 'setProxy') return;
    sandboxes.set(client, settings);
    proxy.forget(client);
  });
  return await listenTransparently(LISTENER_DESCRIPTOR, proxy);
}

/** The packet filter decides alone so far and leads nobody to the proxy: whoever comes all the same gets nothing. */
function noPolicies(gateway: string): PolicySource {
  const denyAll = resolvePolicy({ enabled: false });
  const address = cidr(gateway);
  return {
    surroundings: { gateway: address, hostAddresses: [], neighbours: [], pool: address },
    policyOf: () => denyAll,
    namesOf: () => [],
  };
}

/**
 * SAFETY: the modules are loaded as root, since the program may live in a folder only root can read; nothing of a sandbox
 * has been read yet. setuid away from 0 clears all capabilities of every thread, and the parent set no_new_privs.
 */
function dropPrivileges(hostId: number): void {
  if (process.getuid?.() !== 0) return;
  process.setgroups?.([]);
  process.setgid?.(hostId);
  process.setuid?.(hostId);
}

function report(message: EgressReport, whenSent: () => void): void {
  if (process.connected) process.send?.(message, whenSent);
  else whenSent();
}
