import type { TestContext } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

export interface TestClient {
  readonly client: Client;
  readonly transport: StreamableHTTPClientTransport;
}

/** The official client, connected. */
export async function connectClient(
  t: Pick<TestContext, 'after'>,
  url: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<TestClient> {
  const client = new Client({ name: 'test', version: '1' });
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers } });
  await client.connect(transport);
  t.after(() => client.close());
  return { client, transport };
}

/** The text of a tool's result. */
export function textOf(result: Awaited<ReturnType<Client['callTool']>>): string {
  const content = result.content as { readonly type: string; readonly text?: string }[];
  return content.map(({ text }) => text ?? '').join('');
}
