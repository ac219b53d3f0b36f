import { waitUntil } from '@svc/contract/testing';
import { Sandbox } from '@svc/sdk';
import { BUSYBOX } from '../../test/engine/start-engine.ts';
import { readTree, sumOf } from '../suite/processes.ts';
import { SdkServer } from '../suite/sdk-server.ts';
import { PeerDaemon, type PeerName } from './peer-daemons.ts';

const FULL_TIMEOUT_MS = 60_000;

/** What can make a container that waits, and run processes in it. */
export interface Contender {
  readonly name: string;
  /** Resolves when the next sandbox is prepared, where it does that. */
  untilFull?(): Promise<void>;
  create(): Promise<string>;
  run(id: string, command: readonly string[]): Promise<unknown>;
  remove(id: string): Promise<void>;
  memoryBytes(): number;
}

/** Docker, Podman, svc with each class cold, and svc as a new installation is. They end with the stack. */
export async function startContenders(stack: AsyncDisposableStack): Promise<readonly Contender[]> {
  return [
    await startPeer(stack, 'docker'),
    await startPeer(stack, 'podman'),
    await startOwn(stack, 'svc, container', 'container'),
    await startOwn(stack, 'svc, gVisor', 'gvisor'),
    await startOwn(stack, 'svc, by default'),
  ];
}

async function startPeer(stack: AsyncDisposableStack, name: PeerName): Promise<Contender> {
  const daemon = stack.use(await PeerDaemon.start(name));
  const { api } = daemon;
  return {
    name,
    create: () => api.create(),
    run: (id, command) => api.exec(id, command),
    remove: (id) => api.remove(id),
    memoryBytes: () => sumOf(readTree(daemon.pid)),
  };
}

/** With a class: cold, without the warm pool. Without: with the defaults of a new installation. */
async function startOwn(
  stack: AsyncDisposableStack,
  name: string,
  isolation?: 'container' | 'gvisor',
): Promise<Contender> {
  const engineArgs = isolation === undefined ? ['--warm-adaptive', '3'] : [];
  const { server, client } = stack.use(await SdkServer.start({ engineArgs }));
  const sandboxes = new Map<string, Sandbox>();
  return {
    name,
    ...(isolation === undefined ? { untilFull: () => untilOneWaits(server) } : {}),
    create: async () => {
      const chosen = isolation === undefined ? {} : { isolation };
      const sandbox = await Sandbox.create({ client, image: BUSYBOX, ...chosen });
      sandboxes.set(sandbox.id, sandbox);
      return sandbox.id;
    },
    run: async (id, [program = '', ...args]) => {
      const result = await sandboxes.get(id)?.exec(program, args);
      if (result?.code !== 0) throw new Error(`${program} ended with ${result?.code}`);
    },
    remove: async (id) => {
      await sandboxes.get(id)?.remove();
      sandboxes.delete(id);
    },
    memoryBytes: () => sumOf(readTree(server.pid)) + sumOf(readTree(server.engine.wrapperPid)),
  };
}

/** The image was used before, and the next warm sandbox is ready; not for the first one. */
async function untilOneWaits({ engine }: SdkServer['server']): Promise<void> {
  const isThere = async () => {
    const { waiting, handedOut, missed } = await engine.client.pool();
    return waiting.length > 0 || handedOut + missed === 0;
  };
  await waitUntil(isThere, { timeoutMs: FULL_TIMEOUT_MS, what: 'a sandbox waits' });
}

/** From the create until a process inside has written; it is removed after that. Milliseconds. */
export async function createUseRemove(contender: Contender): Promise<number> {
  const start = performance.now();
  const id = await contender.create();
  await contender.run(id, ['/bin/echo', 'x']);
  const took = performance.now() - start;
  await contender.remove(id);
  return took;
}
