import type { NetworkPolicy } from './network.ts';

/** The defaults of a sandbox. */
export const DEFAULT_VCPUS = 1;
export const DEFAULT_MEMORY_MIB = 512;
export const DEFAULT_DISK_MIB = 4096;
export const DEFAULT_SHELL = '/bin/sh';
export const DEFAULT_MAX_CONNECTIONS = 256;
/** Interval between two measurements of a sandbox's usage. */
export const DEFAULT_METRICS_INTERVAL_MS = 1000;

/** Changes of owners and modes by a guest in a host folder are kept in an overlay and do not reach the host. */
export const DEFAULT_STAT_VIRTUALIZATION = 'strict';
export const DEFAULT_HOST_PERMISSIONS = 'private';

/** Names are resolved by the host's resolvers. */
export const DEFAULT_DNS = { nameservers: [], query_timeout_ms: 5000, rebind_protection: true };

/** TLS connections are not intercepted, unless the sandbox has secrets or asks for it. */
export const DEFAULT_TLS = {
  enabled: false,
  block_quic_on_intercept: true,
  verify_upstream: true,
  intercepted_ports: [443],
  cache: { capacity: 1000, validity_hours: 24 },
};

/** The sandbox may resolve names through the gateway and reach public addresses; its published ports can be reached. */
export const DEFAULT_POLICY = {
  default_egress: 'deny',
  default_ingress: 'allow',
  rules: [
    {
      direction: 'egress',
      destination: { group: 'host' },
      action: 'allow',
      protocols: ['udp', 'tcp'],
      ports: [{ start: 53, end: 53 }],
    },
    { direction: 'egress', destination: { group: 'public' }, action: 'allow', protocols: [], ports: [] },
  ],
} satisfies NetworkPolicy;

/** The policy of a sandbox without a network. */
export const DENY_ALL = {
  default_egress: 'deny',
  default_ingress: 'deny',
  rules: [],
} satisfies NetworkPolicy;
