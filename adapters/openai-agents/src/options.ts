import type { SandboxClientOptions } from '@openai/agents-core/sandbox';
import type { Client, CreateOptions } from '@svc/sdk';

const DEFAULT_IMAGE = 'python';

/** By which sandboxes of agents are told from others. */
export const LABELS = { 'made-by': 'openai-agents' } as const;

/** The options of `Sandbox.create`. Those of a run win over those of the client. */
export interface SvcSandboxOptions extends SandboxClientOptions, Omit<CreateOptions, 'name' | 'slug'> {
  /** The one of `SVC_API_URL` and `SVC_API_KEY` unless given. */
  readonly client?: Client;
  /** The ports that `resolveExposedPort` gives addresses of. */
  readonly exposedPorts?: readonly number[];
}

/** What is made for a session: kept when it stops, so that the session can be resumed. */
export function toCreateOptions(options: SvcSandboxOptions): CreateOptions {
  const { client: _client, exposedPorts: _ports, ...own } = options;
  const source = own.snapshotId === undefined ? { image: DEFAULT_IMAGE } : {};
  return { isEphemeral: false, ...source, ...own, labels: { ...own.labels, ...LABELS } };
}
