import type { Network } from '@svc/contract';
import { DEFAULT_TLS } from '@svc/contract/spec';

/** Whether connections of a sandbox are read: it asked for that, or has secrets. */
export function isIntercepted(network: Network | undefined): boolean {
  if (network?.enabled === false) return false;
  return network?.tls?.enabled === true || (network?.secrets?.entries ?? []).length > 0;
}

/**
 * The ports whose connections are read, whether they are closed to UDP, over which HTTP/3 would go past us, and whether plain HTTP is
 * read at every port: a secret may go over it, so it is replaced and held there as well.
 */
export function readPorts({ tls, secrets }: Network): {
  readonly interceptedPorts: readonly number[];
  readonly blockQuic: boolean;
  readonly readsPlainHttp: boolean;
} {
  return {
    interceptedPorts: tls?.intercepted_ports ?? DEFAULT_TLS.intercepted_ports,
    blockQuic: tls?.block_quic_on_intercept ?? DEFAULT_TLS.block_quic_on_intercept,
    readsPlainHttp: (secrets?.entries ?? []).some((entry) => entry.require_tls_identity === false),
  };
}
