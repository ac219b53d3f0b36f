import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import {
  fieldsOf,
  openClient,
  openStdioClient,
  type McpClient,
} from '../../packages/server/src/testing/mcp-client.ts';
import type { TestServer } from './start-server.ts';

const SVC = resolve(import.meta.dirname, '../../svc');

interface Content {
  readonly type: string;
  readonly text?: string;
  readonly uri?: string;
  readonly data?: string;
  readonly mimeType?: string;
  readonly size?: number;
}

/** What tools answer is looked into in many ways. */
export interface Answer {
  readonly text: string;
  readonly content: readonly Content[];
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly data: any;
}

/** The official client on one transport, and which tools it has called. */
export class Agent {
  readonly client: McpClient;
  readonly called = new Set<string>();
  readonly #sandbox: string;

  private constructor(client: McpClient, sandbox: string) {
    this.client = client;
    this.#sandbox = sandbox;
  }

  static async overHttp(server: TestServer, sandbox: string): Promise<Agent> {
    return await Agent.#ready((await openClient(server.url)).client, sandbox);
  }

  static async overStdio(server: TestServer, sandbox: string): Promise<Agent> {
    return await Agent.#ready(await openStdioClient(SVC, { SVC_API_URL: server.url }), sandbox);
  }

  static async #ready(client: McpClient, sandbox: string): Promise<Agent> {
    await client.listTools();
    return new Agent(client, sandbox);
  }

  async call(name: string, input: object = {}): Promise<Answer> {
    const { isError, ...answer } = await this.#call(name, input);
    assert.ok(!isError, `${name}: ${answer.text}`);
    return answer;
  }

  async fail(name: string, input: object = {}): Promise<string> {
    const { isError, text: reason } = await this.#call(name, input);
    assert.ok(isError, `${name} did not fail: ${reason}`);
    return reason;
  }

  async #call(name: string, input: object): Promise<Answer & { readonly isError: boolean }> {
    this.called.add(name);
    const result = await this.client.callTool(
      { name, arguments: { sandbox: this.#sandbox, ...input } },
      undefined,
      { timeout: 180_000 },
    );
    const content = result.content as readonly Content[];
    const [first] = content;
    return { text: first?.text ?? '', content, data: fieldsOf(result), isError: result.isError === true };
  }

  async close(): Promise<void> {
    await this.client.close();
  }
}
