import type { Network } from '@svc/contract';
import { DEFAULT_TLS } from '@svc/contract/spec';

/** Whether connections of a sandbox are intercepted: the spec asks for that, or has secrets. */
export function isIntercepted(network: Network | undefined): boolean {
  if (network?.enabled === false) return false;
  return network?.tls?.enabled === true || (network?.secrets?.entries ?? []).length > 0;
}

/**
 * The intercepted ports, whether they are closed to UDP, over which HTTP/3 would bypass the interception, and whether plain HTTP is
 * intercepted at every port: a secret may be sent over it, so it is checked and replaced there too.
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
