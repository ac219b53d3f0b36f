import type { NetworkChange, Sandbox } from '@svc/sdk';

type Info = Sandbox['info'];
type NetworkPolicy = NonNullable<NetworkChange['policy']>;

/** The limits of a sandbox; null where they are unknown. */
export function resourcesOf({ spec }: Info): {
  readonly vcpus: number | null;
  readonly memoryMib: number | null;
} {
  const { vcpus, memory_mib: memoryMib } = (spec?.resources ?? {}) as Readonly<Record<string, unknown>>;
  return {
    vcpus: typeof vcpus === 'number' ? vcpus : null,
    memoryMib: typeof memoryMib === 'number' ? memoryMib : null,
  };
}

export interface PublishedPortView {
  readonly guest_port: number;
  readonly host_port: number;
  readonly host_bind: string;
  readonly protocol: string;
}

/** Ports of the server's host that lead into the sandbox. */
export function portsOf({ spec }: Info): readonly PublishedPortView[] {
  const { ports } = (spec?.network ?? {}) as { readonly ports?: unknown };
  // The server's own view; its shape is in docs/reference.
  return Array.isArray(ports) ? (ports as readonly PublishedPortView[]) : [];
}

/** The network policy; null while it is unknown, as before the image is known. */
export function policyOf({ spec }: Info): NetworkPolicy | null {
  const { policy = null } = (spec?.network ?? {}) as { readonly policy?: NetworkPolicy | null };
  return policy;
}

/** The main command of the image; empty: none. */
export function ownWordsOf({ spec }: Info): readonly string[] {
  const { entrypoint, cmd } = (spec?.runtime ?? {}) as Readonly<Record<string, unknown>>;
  return [entrypoint, cmd].flatMap((words) => (Array.isArray(words) ? words.map(String) : []));
}

/** The shell that the sandbox was made with. */
export function shellOf({ spec }: Info): string {
  const { shell } = (spec?.runtime ?? {}) as { readonly shell?: unknown };
  return typeof shell === 'string' ? shell : '/bin/sh';
}
