import type { NetworkChange, Sandbox } from '@svc/sdk';

type Info = Sandbox['info'];
type NetworkPolicy = NonNullable<NetworkChange['policy']>;

/** What a sandbox may use; null where the server does not say. */
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

/** What it may reach; null where the server does not say, as while its image is not known. */
export function policyOf({ spec }: Info): NetworkPolicy | null {
  const { policy = null } = (spec?.network ?? {}) as { readonly policy?: NetworkPolicy | null };
  return policy;
}

/** What the image runs by itself; empty: nothing. */
export function ownWordsOf({ spec }: Info): readonly string[] {
  const { entrypoint, cmd } = (spec?.runtime ?? {}) as Readonly<Record<string, unknown>>;
  return [entrypoint, cmd].flatMap((words) => (Array.isArray(words) ? words.map(String) : []));
}

/** The shell that the sandbox was made with. */
export function shellOf({ spec }: Info): string {
  const { shell } = (spec?.runtime ?? {}) as { readonly shell?: unknown };
  return typeof shell === 'string' ? shell : '/bin/sh';
}
