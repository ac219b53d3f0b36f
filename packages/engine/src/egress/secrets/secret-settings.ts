import { matchesHost, type HostPattern } from '../proxy/host-pattern.ts';

export type ViolationAction =
  | { readonly type: Blocking }
  | {
      readonly type: 'passthrough';
      readonly hosts: readonly HostPattern[];
      /** For all other hosts; absent: the next wider setting. */
      readonly otherwise?: Blocking;
    };

export interface Secret {
  readonly envVar: string;
  readonly placeholder: string;
  /** Sent only to allowed hosts. */
  readonly value: string;
  readonly allowedHosts: readonly HostPattern[];
  readonly injection: {
    readonly headers: boolean;
    /** In lower case, the only headers in which it is replaced; absent: all. */
    readonly headerFields?: readonly string[];
    readonly basicAuth: boolean;
    readonly queryParams: boolean;
    readonly body: boolean;
  };
  /** Null: the default for all secrets. */
  readonly onViolation: ViolationAction | null;
  /** The host must have proved its identity by a certificate that we checked. */
  readonly requireTlsIdentity: boolean;
}

export interface SecretSettings {
  readonly entries: readonly Secret[];
  readonly onViolation: ViolationAction;
}

/** The host of a request, and how it was verified. */
export interface Identity {
  readonly host: string;
  /** This sandbox resolved the name to the address. */
  readonly isPinned: boolean;
  /** The server's certificate for that name was verified. */
  readonly isProven: boolean;
}

export type Blocking = 'block' | 'block_and_log' | 'block_and_terminate';
/** From the mildest to the strictest. */
const STRICTNESS: readonly Blocking[] = ['block', 'block_and_log', 'block_and_terminate'];

/** The treatment of a placeholder in a request: replace it by its value, leave it, or block the request. */
export type SecretAction = 'substitute' | 'leave' | Blocking;

export function actionFor(secret: Secret, settings: SecretSettings, identity: Identity): SecretAction {
  const { host, isPinned, isProven } = identity;
  const isAllowed = secret.allowedHosts.some((pattern) => matchesHost(pattern, host));
  // An unverified host counts as one that is not allowed.
  if (isAllowed && isPinned && (isProven || !secret.requireTlsIdentity)) return 'substitute';
  for (const action of [secret.onViolation, settings.onViolation]) {
    if (action === null) continue;
    if (action.type !== 'passthrough') return action.type;
    if (action.hosts.some((pattern) => matchesHost(pattern, host))) return 'leave';
    if (action.otherwise !== undefined) return action.otherwise;
  }
  return 'block_and_log';
}

export function strictest(actions: readonly Blocking[]): Blocking {
  return STRICTNESS.findLast((action) => actions.includes(action)) ?? 'block_and_log';
}
