import { ALL_NAMESPACES } from '@svc/contract';

/** Who asks, after their credential was checked. */
export interface Caller {
  /** `developer`: the server runs in development mode and asks nobody for a key. */
  readonly kind: 'developer' | 'key';
  /** One namespace, or `*` for all. */
  readonly namespace: string;
  /** The organization's key that was shown; absent for a key that the server signed. */
  readonly apiKey?: { readonly id: string; readonly name: string };
}

export function reaches(caller: Caller, namespace: string): boolean {
  return caller.namespace === ALL_NAMESPACES || caller.namespace === namespace;
}

/** Whether the caller owns this server and its host. An organization's key reaches its own namespace, whatever that is called. */
export function isOperator({ kind, namespace, apiKey }: Caller): boolean {
  return kind === 'developer' || (namespace === ALL_NAMESPACES && apiKey === undefined);
}
