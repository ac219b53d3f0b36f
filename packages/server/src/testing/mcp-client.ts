import type { TestContext } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { getDefaultEnvironment, StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

export interface TestClient {
  readonly client: Client;
  readonly transport: StreamableHTTPClientTransport;
}

export type McpClient = Client;

/** The official client, connected. */
export async function connectClient(
  t: Pick<TestContext, 'after'>,
  url: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<TestClient> {
  const opened = await openClient(url, headers);
  t.after(() => opened.client.close());
  return opened;
}

/** The same, closed by the caller. */
export async function openClient(
  url: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<TestClient> {
  const client = new Client({ name: 'test', version: '1' });
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers } });
  await client.connect(transport);
  return { client, transport };
}

/** Starts the server as a child, like AI tools do; `svc` is the path of the program. */
export async function openStdioClient(svc: string, env: Readonly<Record<string, string>>): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' });
  // The program finds its interpreter by PATH, which the transport passes on.
  const all = { ...getDefaultEnvironment(), ...env };
  await client.connect(
    new StdioClientTransport({ command: svc, args: ['mcp'], env: all, stderr: 'inherit' }),
  );
  return client;
}

/** The text of a tool's result. */
export function textOf(result: Awaited<ReturnType<Client['callTool']>>): string {
  const content = result.content as { readonly type: string; readonly text?: string }[];
  return content.map(({ text }) => text ?? '').join('');
}

/** The fields of an answer besides its text. */
export function fieldsOf({
  structuredContent,
  _meta,
}: Awaited<ReturnType<Client['callTool']>>): Readonly<Record<string, unknown>> {
  return (structuredContent ?? _meta?.['result'] ?? {}) as Readonly<Record<string, unknown>>;
}
