/**
 * The egress process: it alone parses what sandboxes send to our resolver and our proxy. It gives up all privileges before it opens
 * a socket, and goes on answering while the engine is away, so that a restart of the engine costs sandboxes nothing.
 */
import { flushCompileCache } from 'node:module';
import { ClientPolicies } from './client-policies.ts';
import { DnsForwarder } from './dns-forwarder.ts';
import { listenForDns } from './dns-listeners.ts';
import {
  LISTENER_DESCRIPTORS,
  type EgressConfig,
  type EgressOrder,
  type EgressReport,
} from './egress-messages.ts';
import { PinRequests } from './pin-requests.ts';
import { ProxiedSandboxes } from './proxied-sandboxes.ts';
import { listenTransparently } from './proxy/transparent-listener.ts';
import { TransparentProxy } from './proxy/transparent-proxy.ts';
import { fixedResolvers, hostResolvers } from './resolvers.ts';
import { ToldDecisions } from './told-decisions.ts';

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
  const clients = new ClientPolicies(config.surroundings, config.policies);
  const pins = new PinRequests((message) => report(message, () => undefined));
  const told = new ToldDecisions((client, decided) =>
    report({ kind: 'decided', client, report: decided }, () => undefined),
  );
  const { proxy, sandboxes } = makeProxy(clients, told);
  clients.isProxied = (client) => sandboxes.find(client) !== undefined;
  for (const [client, settings] of config.proxied) sandboxes.set(client, settings);
  for (const [client, known] of config.pins) clients.remember(client, known);
  let isRecorded = false;
  process.on('message', (message) => {
    const order = message as EgressOrder; // From our own parent too.
    if (order.kind === 'forget') told.forget(order.client);
    else if (order.kind === 'pinned') pins.settle(order.id, order.done);
    else if (order.kind === 'recorded') isRecorded = true;
    else if (order.kind === 'setSurroundings') clients.surroundings = order.surroundings;
    else if (order.kind === 'setPolicy') {
      const known = clients.set(order.client, order.policy);
      // What is read is read anew from the beginning; what only has another policy goes on where that lets it.
      if (sandboxes.set(order.client, order.settings)) proxy.forget(order.client);
      else proxy.rejudge(order.client);
      report({ kind: 'known', id: order.id, pins: known }, () => undefined);
    } else report({ kind: 'known', id: order.id, pins: clients.pinsOf(order.client) }, () => undefined);
  });
  process.on('disconnect', () => {
    // Of an engine that was killed before it wrote down who this is: no other would ever end it.
    if (!isRecorded) process.exit(1);
    pins.close();
  });
  const forwarder = new DnsForwarder({
    resolvers,
    clients,
    pin: (client, wanted) => pins.request(client, wanted),
    told,
  });
  const { listenAddress, ipv6ListenAddress } = config;
  const addresses = [listenAddress, ...(ipv6ListenAddress === null ? [] : [ipv6ListenAddress])];
  const { port } = await listenForDns(forwarder, addresses, () => abandoned.refresh());
  const proxyPorts = {
    ipv4: await listenTransparently(LISTENER_DESCRIPTORS.ipv4, proxy),
    ipv6: ipv6ListenAddress === null ? null : await listenTransparently(LISTENER_DESCRIPTORS.ipv6, proxy),
  };
  report({ kind: 'listening', port, proxyPorts }, () => undefined);
}

/** Until a sandbox is set it is not known to the proxy, which refuses whoever it does not know. */
function makeProxy(policies: ClientPolicies, told: ToldDecisions) {
  const sandboxes = new ProxiedSandboxes({ policies, told });
  const proxy = new TransparentProxy({
    find: (client) => sandboxes.find(client),
    onRefusal: (refusal) => sandboxes.refused(refusal),
    onPassed: (connection) => sandboxes.passed(connection),
  });
  return { proxy, sandboxes };
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
