import {
  defineProvider,
  type CreateSandboxOptions,
  type Provider,
  type SandboxInfo,
} from '@computesdk/provider';
import { Client, Sandbox, SvcError, type ClientOptions } from '@svc/sdk';
import { runCommand } from './commands.ts';
import { LABELS, toCreateOptions, type SvcConfig } from './create-options.ts';
import { files } from './files.ts';
import { SvcSnapshots, type SvcSnapshot } from './snapshots.ts';

interface Found {
  readonly sandbox: Sandbox;
  readonly sandboxId: string;
}

/** The provider; one client, and so one set of connections, for all that it is asked for. */
export function svc(config: SvcConfig = {}): Provider<Sandbox, never, SvcSnapshot> {
  const { image: _image, ...options } = config;
  return provide({ config, client: clientOf(options) });
}

interface Connected {
  readonly config: SvcConfig;
  readonly client: Client;
}

const provide = defineProvider<Sandbox, Connected, never, SvcSnapshot>({
  name: 'svc',
  methods: {
    sandbox: {
      create: createSandbox,
      getById: findSandbox,
      list: async ({ client }) => {
        const all = await Array.fromAsync(Sandbox.list({ client, labels: LABELS }));
        return all.filter(({ status }) => status === 'running').map(found);
      },
      destroy: async (connected, sandboxId) => {
        const there = await findSandbox(connected, sandboxId);
        await there?.sandbox.remove().catch(unlessGone);
      },
      runCommand,
      streamCommand: runCommand,
      getInfo: infoOf,
      getUrl: async (sandbox, { port, protocol }) => inProtocol(await sandbox.url(port), protocol),
      filesystem: files,
    },
    snapshot: {
      create: ({ client }, sandboxId, options) => new SvcSnapshots(client).create(sandboxId, options),
      list: ({ client }, options) => new SvcSnapshots(client).list(options),
      delete: ({ client }, snapshotId) => new SvcSnapshots(client).remove(snapshotId),
    },
  },
});

/** Without options it is the one of the environment, which reports what is missing when it is used. */
function clientOf(options: ClientOptions): Client {
  return Object.keys(options).length === 0 ? Client.ofEnvironment : new Client(options);
}

function found(sandbox: Sandbox): Found {
  return { sandbox, sandboxId: sandbox.id };
}

async function createSandbox(
  { config, client }: Connected,
  options: CreateSandboxOptions = {},
): Promise<Found> {
  const { signal } = options;
  const call = signal === undefined ? { client } : { client, signal };
  return found(await Sandbox.create({ ...toCreateOptions(config, options), ...call }));
}

async function findSandbox({ client }: Connected, sandboxId: string): Promise<Found | null> {
  try {
    return found(await Sandbox.connect(sandboxId, { client }));
  } catch (error) {
    unlessGone(error);
    return null;
  }
}

function unlessGone(error: unknown): void {
  if (!SvcError.is(error, 'sandbox_not_found')) throw error;
}

async function infoOf(sandbox: Sandbox): Promise<SandboxInfo> {
  const { id, status, created_at, spec, ends_at } = await sandbox.refresh();
  const seconds = spec?.lifecycle.max_duration_secs ?? 0;
  return {
    id,
    provider: 'svc',
    status: STATUSES[status],
    createdAt: new Date(created_at),
    // 0: it has no limit.
    timeout: seconds * 1000,
    metadata: { ...spec?.labels, name: sandbox.name, endsAt: ends_at },
  };
}

const STATUSES: Readonly<Record<Sandbox['status'], SandboxInfo['status']>> = {
  created: 'stopped',
  starting: 'running',
  running: 'running',
  temporarily_unavailable: 'error',
  recovery_decision_required: 'error',
  stopping: 'stopped',
  stopped: 'stopped',
  failed: 'error',
};

/** The server has TLS or not; a caller may ask for a WebSocket. @throws SvcError `invalid_request` */
function inProtocol(address: string, protocol?: string): string {
  if (protocol === undefined) return address;
  const isSecure = address.startsWith('https:');
  const word = protocol.replace(/:$/, '');
  if (word === 'http' || (word === 'https' && isSecure)) return address;
  if (word === 'ws' || (word === 'wss' && isSecure)) return address.replace(/^http/, 'ws');
  const message = `Ports of this server are reached by ${isSecure ? 'https and wss' : 'http and ws'}, not by ${word}`;
  throw new SvcError('invalid_request', message, { details: { field: 'protocol' } });
}
