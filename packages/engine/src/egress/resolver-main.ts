/**
 * The resolver: it answers the DNS queries of all sandboxes. It gets no secret, reads no connection, and drops all
 * privileges before it opens a socket.
 */
import { ClientPolicies } from './client-policies.ts';
import { DnsForwarder } from './dns-forwarder.ts';
import { listenForDns, type DnsListeners } from './dns-listeners.ts';
import type { ResolverConfig, ResolverOrder } from './egress-messages.ts';
import { serveEngine, type EngineLink } from './engine-link.ts';
import { PinRequests } from './pin-requests.ts';
import { fixedResolvers, hostResolvers } from './resolvers.ts';
import { DecisionReports } from './decision-reports.ts';

const RESOLV_CONF = '/etc/resolv.conf';

serveEngine<{ config: ResolverConfig; order: ResolverOrder }>(async (config, engine) => {
  const clients = new ClientPolicies(config.hostNetworks, config.policies, config.proxied);
  for (const [client, known] of config.pins) clients.remember(client, known);
  const pins = new PinRequests((message) => engine.report(message));
  engine.onGone(() => pins.close());
  const scopes = new Map(config.scopes);
  // A client without a known scope, such as an image pull, has its own.
  const scopeOf = (client: string) => scopes.get(client) ?? client;
  const reports = new DecisionReports(
    (client, report) => engine.report({ kind: 'decided', client, report }),
    scopeOf,
  );
  const forwarder = new DnsForwarder({
    resolvers: config.resolvers === null ? hostResolvers(RESOLV_CONF) : fixedResolvers(config.resolvers),
    clients,
    pin: (client, wanted) => pins.request(client, wanted),
    reports,
    scopeOf,
  });
  obey(engine, {
    clients,
    pins,
    scopes,
    forget: (client) => {
      scopes.delete(client);
      reports.forget(client);
      forwarder.forget(client);
      listeners?.forget(client);
    },
  });
  let listeners: DnsListeners | null = null;
  const { listenAddress, ipv6ListenAddress } = config;
  const addresses = [listenAddress, ...(ipv6ListenAddress === null ? [] : [ipv6ListenAddress])];
  listeners = await listenForDns(forwarder, addresses, { onQuestion: () => engine.stay(), scopeOf });
  const { port } = listeners;
  engine.report({
    kind: 'listening',
    ports: { ipv4: port, ipv6: ipv6ListenAddress === null ? null : port },
  });
});

interface Parts {
  readonly clients: ClientPolicies;
  readonly pins: PinRequests;
  readonly scopes: Map<string, string>;
  readonly forget: (client: string) => void;
}

function obey(engine: EngineLink<ResolverOrder>, { clients, pins, scopes, forget }: Parts): void {
  engine.listen((order) => {
    switch (order.kind) {
      case 'forget':
        return forget(order.client);
      case 'pinned':
        return pins.settle(order.id, order.done);
      case 'setHostNetworks':
        clients.hostNetworks = order.hostNetworks;
        return undefined;
      case 'setScope':
        scopes.set(order.client, order.scope);
        return undefined;
      case 'setPolicy':
        return engine.report({
          kind: 'done',
          id: order.id,
          pins: clients.set(order.client, order.policy, order.isProxied),
        });
      case 'tellKnown':
        return engine.report({ kind: 'done', id: order.id, pins: clients.pinsOf(order.client) });
    }
  });
}
