import { ALL_NAMESPACES, PlatformError } from '@svc/contract';

/** The caller, after its credential was checked. */
export interface Caller {
  /** `developer`: the server runs in development mode and asks for no key. */
  readonly kind: 'developer' | 'key';
  /** One namespace, or `*` for all. */
  readonly namespace: string;
  /** The organization's key that was used; absent for a key that the server signed. */
  readonly apiKey?: {
    readonly id: string;
    readonly name: string;
    /** Id of the user who made it; null: the operator. */
    readonly createdBy: string | null;
  };
}

export function reaches(caller: Caller, namespace: string): boolean {
  return caller.namespace === ALL_NAMESPACES || caller.namespace === namespace;
}

/** @throws PlatformError `forbidden` */
export function requireReach(caller: Caller, namespace: string): void {
  if (reaches(caller, namespace)) return;
  throw new PlatformError('forbidden', `Access denied to namespace '${namespace}'`, {
    details: { namespace },
  });
}

/**
 * Whether the caller owns this server and its host. An organization's key reaches its own namespace only, also when that is called `*`.
 */
export function isOperator({ kind, namespace, apiKey }: Caller): boolean {
  return kind === 'developer' || (namespace === ALL_NAMESPACES && apiKey === undefined);
}
