import { matchesHost, type HostPattern } from '../proxy/host-pattern.ts';

export type ViolationAction =
  | { readonly type: Blocking }
  | {
      readonly type: 'passthrough';
      readonly hosts: readonly HostPattern[];
      /** For all other hosts; absent: as the next wider action says. */
      readonly otherwise?: Blocking;
    };

export interface Secret {
  readonly envVar: string;
  readonly placeholder: string;
  /** Never leaves this process but to a host that is allowed. */
  readonly value: string;
  readonly allowedHosts: readonly HostPattern[];
  readonly injection: {
    readonly headers: boolean;
    /** In lower case, the only headers in which it is replaced; absent: every one. */
    readonly headerFields?: readonly string[];
    readonly basicAuth: boolean;
    readonly queryParams: boolean;
    readonly body: boolean;
  };
  /** Null: as for all. */
  readonly onViolation: ViolationAction | null;
  /** The host must have proved who it is, by a certificate that we checked. */
  readonly requireTlsIdentity: boolean;
}

export interface SecretSettings {
  readonly entries: readonly Secret[];
  readonly onViolation: ViolationAction;
}

/** Whom a request is for, and how sure that is. */
export interface Identity {
  readonly host: string;
  /** This sandbox was led to the address by that name. */
  readonly isPinned: boolean;
  /** The server showed a certificate for that name, and we checked it. */
  readonly isProven: boolean;
}

export type Blocking = 'block' | 'block_and_log' | 'block_and_terminate';
/** From the mildest to the strictest. */
const STRICTNESS: readonly Blocking[] = ['block', 'block_and_log', 'block_and_terminate'];

/** What is done about a placeholder in a request: put the value in its place, leave it, or stop the request. */
export type Treatment = 'substitute' | 'leave' | Blocking;

export function treatmentOf(secret: Secret, settings: SecretSettings, identity: Identity): Treatment {
  const { host, isPinned, isProven } = identity;
  const isAllowed = secret.allowedHosts.some((pattern) => matchesHost(pattern, host));
  // A host that cannot show that it is the one allowed is another one.
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
