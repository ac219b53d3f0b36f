import {
  HarnessSandboxAuthenticationError,
  type HarnessV1NetworkPolicy,
  type HarnessV1NetworkSandboxSession,
  type HarnessV1SandboxProvider,
} from '@ai-sdk/harness';
import { Client, Sandbox, SvcError, type CreateOptions } from '@svc/sdk';
import { createRunning } from './create-running.ts';
import { toPolicy } from './network-policy.ts';
import { networkSession } from './session.ts';

const PROVIDER = 'svc';
const DEFAULT_IMAGE = 'node';
const LABELS = { 'made-by': 'ai-sdk' } as const;

/** The options of `Sandbox.create`, but for the name, which the session gives. */
export interface SvcSandboxSettings extends Omit<CreateOptions, 'name' | 'slug' | 'isEphemeral'> {
  /** The one of `SVC_API_URL` and `SVC_API_KEY` unless given. */
  readonly client?: Client;
  /** The ports that sessions expose. */
  readonly ports?: readonly number[];
  /** In place of `network`. */
  readonly networkPolicy?: HarnessV1NetworkPolicy;
}

/** A sandbox of its own for each session of a harness agent. */
export function createSvcSandbox(settings: SvcSandboxSettings = {}): HarnessV1SandboxProvider {
  const { client = Client.ofEnvironment, ports = [], networkPolicy, ...options } = settings;
  const open = async (sandbox: Sandbox, signal?: AbortSignal): Promise<HarnessV1NetworkSandboxSession> =>
    await networkSession(sandbox, ports, callOf(signal));
  return {
    specificationVersion: 'harness-sandbox-v1',
    providerId: PROVIDER,

    createSession: async ({ sessionId, abortSignal, onFirstCreate } = {}) => {
      const network = networkPolicy === undefined ? {} : { network: { policy: toPolicy(networkPolicy) } };
      const source = options.snapshotId === undefined ? { image: DEFAULT_IMAGE } : {};
      const sandbox = await authorized(
        createRunning({
          ...source,
          ...options,
          ...network,
          ...(sessionId === undefined ? {} : { name: nameOf(sessionId) }),
          labels: { ...options.labels, ...LABELS },
          // One without an id cannot be resumed; the other is kept when it stops.
          isEphemeral: sessionId === undefined,
          client,
          ...callOf(abortSignal),
        }),
      );
      try {
        const session = await open(sandbox, abortSignal);
        await onFirstCreate?.(session.restricted(), abortSignal === undefined ? {} : { abortSignal });
        return session;
      } catch (error) {
        await sandbox.remove();
        throw error;
      }
    },

    resumeSession: async ({ sessionId, abortSignal }) => {
      const call = callOf(abortSignal);
      const sandbox = await authorized(Sandbox.connect(nameOf(sessionId), { client, ...call }));
      if (sandbox.status !== 'running') await sandbox.start(call);
      return await open(sandbox, abortSignal);
    },
  };
}

function callOf(signal: AbortSignal | undefined): { readonly signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}

/** @throws SvcError `invalid_request` for an id that cannot be part of a name */
function nameOf(sessionId: string): string {
  if (/^[A-Za-z0-9._-]{1,120}$/.test(sessionId)) return `ai-sdk-${sessionId}`;
  const message =
    'sessionId becomes the name of a sandbox: 1 to 120 letters, digits, dots, hyphens or underscores';
  throw new SvcError('invalid_request', message, { details: { field: 'sessionId' } });
}

/** What the AI SDK tells apart: a key that is missing or refused. */
async function authorized(opening: Promise<Sandbox>): Promise<Sandbox> {
  try {
    return await opening;
  } catch (error) {
    if (!SvcError.is(error, 'invalid_api_key') && !SvcError.is(error, 'forbidden')) throw error;
    const message = `svc refused the key: ${error.message}. Set SVC_API_URL and SVC_API_KEY, or give a client`;
    throw new HarnessSandboxAuthenticationError({ message, sandboxProviderId: PROVIDER, cause: error });
  }
}
