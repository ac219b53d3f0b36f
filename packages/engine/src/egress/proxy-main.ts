/**
 * A proxy: it reads the connections of the sandboxes of one scope, and holds only the secret values of that scope. It drops
 * all privileges before it reads any input of a sandbox.
 */
import { ClientPolicies } from './client-policies.ts';
import { LISTENER_DESCRIPTORS, type ProxyConfig, type ProxyOrder } from './egress-messages.ts';
import { serveEngine } from './engine-link.ts';
import { ProxiedSandboxes } from './proxied-sandboxes.ts';
import { listenTransparently } from './proxy/transparent-listener.ts';
import { TransparentProxy } from './proxy/transparent-proxy.ts';
import { ReadSandboxes } from './read-sandboxes.ts';
import { DecisionReports } from './decision-reports.ts';

serveEngine<{ config: ProxyConfig; order: ProxyOrder }>(async (config, engine) => {
  const policies = new ClientPolicies(config.hostNetworks);
  const reports = new DecisionReports((client, report) => engine.report({ kind: 'decided', client, report }));
  const sandboxes = new ProxiedSandboxes({ policies, reports });
  const proxy = new TransparentProxy({
    // Connections of unknown sandboxes are refused.
    find: (client) => sandboxes.find(client),
    onRefusal: (refusal) => sandboxes.refused(refusal),
    onPassed: (connection) => {
      engine.stay();
      sandboxes.passed(connection);
    },
  });
  const read = new ReadSandboxes({ policies, sandboxes, proxy, reports });
  for (const [client, sandbox] of config.sandboxes) read.set(client, sandbox);
  engine.listen((order) => {
    if (order.kind === 'setHostNetworks') {
      policies.hostNetworks = order.hostNetworks;
      return;
    }
    if (order.kind === 'setSandbox') read.set(order.client, order.sandbox);
    else policies.remember(order.client, order.pins);
    engine.report({ kind: 'done', id: order.id, pins: [] });
  });
  const ports = {
    ipv4: await listenTransparently(LISTENER_DESCRIPTORS.ipv4, proxy),
    ipv6: config.hasIpv6 ? await listenTransparently(LISTENER_DESCRIPTORS.ipv6, proxy) : null,
  };
  engine.report({ kind: 'listening', ports });
});
