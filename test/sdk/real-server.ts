import { after, before } from 'node:test';
import { Client, Sandbox } from '@svc/sdk';
import { createKey } from '@svc/server/keys';
import { TestServer } from '../e2e/start-server.ts';
import { BUSYBOX } from '../engine/start-engine.ts';

/** What the tests of one file share: a real server on a real engine, a client with a key of it, and a sandbox that runs. */
export interface RealServer {
  readonly server: TestServer;
  readonly client: Client;
  readonly sandbox: Sandbox;
}

/** Started before the tests of the file that calls this, and gone after them. */
export function useRealServer(): RealServer {
  const shared: { -readonly [Key in keyof RealServer]?: RealServer[Key] } = {};
  before(async () => {
    shared.server = await TestServer.start({ args: [], engineArgs: ['--isolation', 'container'] });
    shared.client = await clientOf(shared.server);
    shared.sandbox = await Sandbox.create({ client: shared.client, name: 'shared', image: BUSYBOX });
  });
  after(async () => {
    shared.sandbox?.close();
    await shared.server?.destroy();
  });
  return {
    get server() {
      return present(shared.server);
    },
    get client() {
      return present(shared.client);
    },
    get sandbox() {
      return present(shared.sandbox);
    },
  };
}

export async function clientOf(server: TestServer): Promise<Client> {
  const { key } = await createKey(server.engine.folder, { namespace: 'default' });
  return new Client({ apiUrl: server.url, apiKey: key });
}

function present<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('it is there only while the tests run');
  return value;
}
