import { posix } from 'node:path';
import type { HarnessV1NetworkSandboxSession } from '@ai-sdk/harness';
import type { Experimental_SandboxSession as SandboxSession } from '@ai-sdk/provider-utils';
import { SvcError, type CallOptions, type Sandbox } from '@svc/sdk';
import { Files } from './files.ts';
import { toPolicy } from './network-policy.ts';
import { run, spawn } from './processes.ts';

type Protocol = 'http' | 'https' | 'ws';

/** @param ports those that it exposes */
export async function networkSession(
  sandbox: Sandbox,
  ports: readonly number[],
  call: CallOptions,
): Promise<HarnessV1NetworkSandboxSession> {
  const folder = (await sandbox.exec('/bin/sh', ['-c', 'pwd'], call)).text().trim();
  const inner = restrictedSession(sandbox, folder, ports);
  let exposed: readonly number[] = [...ports];
  const portUrl = async ({ port, protocol }: { readonly port: number; readonly protocol?: Protocol }) => {
    if (!exposed.includes(port)) throw notExposed(port, exposed);
    return inProtocol(await sandbox.url(port), protocol);
  };
  return {
    ...inner,
    id: sandbox.id,
    defaultWorkingDirectory: folder,
    get ports() {
      return exposed;
    },
    getPortUrl: portUrl,
    getPortEndpoint: async (options) => ({ url: await portUrl(options) }),
    setPorts: async (wanted) => {
      exposed = [...wanted];
    },
    setNetworkPolicy: async (policy) => await sandbox.network.update({ policy: toPolicy(policy) }),
    stop: async () => await unlessOver(sandbox.stop()),
    destroy: async () => await unlessOver(sandbox.remove()),
    restricted: () => inner,
  };
}

function restrictedSession(sandbox: Sandbox, folder: string, ports: readonly number[]): SandboxSession {
  const toPath = (path: string) => posix.resolve(folder, path);
  const files = new Files(sandbox, toPath);
  const folderOf = ({ workingDirectory }: { readonly workingDirectory?: string }) => ({
    workingDirectory: workingDirectory === undefined ? folder : toPath(workingDirectory),
  });
  const shown = ports.length === 0 ? '' : ` It exposes the ports ${ports.join(', ')}.`;
  return {
    description: `A Linux sandbox of svc. Commands are run by /bin/sh and begin in ${folder}, where relative paths lead.${shown}`,
    readFile: async (options) => await files.stream(options),
    readBinaryFile: async (options) => await files.bytes(options),
    readTextFile: async (options) => await files.text(options),
    writeFile: async (options) => await files.write(options),
    writeBinaryFile: async (options) => await files.write(options),
    writeTextFile: async (options) => await files.writeText(options),
    run: async (order) => await run(sandbox, { ...order, ...folderOf(order) }),
    spawn: async (order) => await spawn(sandbox, { ...order, ...folderOf(order) }),
  };
}

function notExposed(port: number, exposed: readonly number[]): SvcError {
  const known = exposed.length === 0 ? 'none is' : `${exposed.join(', ')} are`;
  const message = `Port ${port} is not exposed, ${known}: name it in 'ports' of createSvcSandbox, or with setPorts`;
  return new SvcError('invalid_request', message, { details: { field: 'port' } });
}

/** The server has TLS or not, which no caller can change. @throws SvcError `invalid_request` */
function inProtocol(address: string, protocol: Protocol = 'http'): string {
  if (protocol === 'ws') return address.replace(/^http/, 'ws');
  if (protocol === 'http' || address.startsWith('https:')) return address;
  throw new SvcError('invalid_request', 'Ports of this server are reached without TLS: ask for http or ws', {
    details: { field: 'protocol' },
  });
}

/** Both may be repeated. */
async function unlessOver(ending: Promise<void>): Promise<void> {
  try {
    await ending;
  } catch (error) {
    const isOver = SvcError.is(error, 'sandbox_not_found') || SvcError.is(error, 'invalid_state_transition');
    if (!isOver) throw error;
  }
}
