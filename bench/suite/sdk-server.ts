import { Client } from '@svc/sdk';
import { createKey } from '@svc/server/keys';
import { TestServer } from '../../test/e2e/start-server.ts';

/** A server with an engine of its own, and a client of the organization `default`, until disposed of. */
export class SdkServer implements AsyncDisposable {
  readonly server: TestServer;
  readonly client: Client;
  readonly key: string;

  private constructor(server: TestServer, key: string) {
    this.server = server;
    this.key = key;
    this.client = new Client({ apiUrl: server.url, apiKey: key });
  }

  /** Without `databaseUrl` it keeps its rows in SQLite. */
  static async start({
    engineArgs = [],
    databaseUrl,
  }: { readonly engineArgs?: readonly string[]; readonly databaseUrl?: string } = {}): Promise<SdkServer> {
    const args = databaseUrl === undefined ? [] : ['--database', databaseUrl];
    const server = await TestServer.start({ args, engineArgs });
    try {
      const { key } = await createKey(server.engine.folder, { namespace: 'default', databaseUrl });
      return new SdkServer(server, key);
    } catch (error) {
      await server.destroy();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server.destroy();
  }
}
