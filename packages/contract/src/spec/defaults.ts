import type { NetworkPolicy } from './network.ts';

/** What a sandbox gets that asks for nothing. */
export const DEFAULT_VCPUS = 1;
export const DEFAULT_MEMORY_MIB = 512;
export const DEFAULT_DISK_MIB = 4096;
export const DEFAULT_SHELL = '/bin/sh';
export const DEFAULT_MAX_CONNECTIONS = 256;
/** Between two measurements of what a sandbox uses. */
export const DEFAULT_METRICS_INTERVAL_MS = 1000;

/** What a guest says of owners and modes in a folder of the host stays in an overlay, and off the host. */
export const DEFAULT_STAT_VIRTUALIZATION = 'strict';
export const DEFAULT_HOST_PERMISSIONS = 'private';

/** Names are asked of the host's own resolvers. */
export const DEFAULT_DNS = { nameservers: [], query_timeout_ms: 5000, rebind_protection: true };

/** Connections over TLS are left alone, unless there are secrets or somebody wants them read. */
export const DEFAULT_TLS = {
  enabled: false,
  block_quic_on_intercept: true,
  verify_upstream: true,
  intercepted_ports: [443],
  cache: { capacity: 1000, validity_hours: 24 },
};

/** Names through the gateway, and public addresses; what is published is reached. */
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

/** Of a sandbox without a network. */
export const DENY_ALL = {
  default_egress: 'deny',
  default_ingress: 'deny',
  rules: [],
} satisfies NetworkPolicy;
