import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import { test } from 'node:test';
import { signKey } from '../../packages/server/src/access/signed-keys.ts';
import { openClient, openStdioClient } from '../../packages/server/src/testing/mcp-client.ts';
import { startTestServer } from '../../packages/server/src/testing/test-server.ts';
import { TOOL_LIST } from '../../packages/server/src/transports/mcp/tools.ts';
import { findSnippets } from './find-snippets.ts';

const SVC = resolve(import.meta.dirname, '../../svc');
const DEFAULT_URL = 'http://127.0.0.1:5555';

interface Entry {
  readonly url?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly command?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

const configurations = findSnippets().filter(
  ({ path, language }) => path === 'docs/guides/mcp.md' && language === 'json',
);

test('the configurations that the page shows lead to the tools', async (t) => {
  assert.equal(configurations.length, 4);
  const signingKey = randomBytes(32);
  const { url } = await startTestServer(t, { signingKey });
  const key = await signKey(signingKey, { namespace: '*', createdAt: new Date(), expiresAt: null });
  for (const { text, place } of configurations) {
    // As the tools themselves fill them in.
    const filled = text
      .replaceAll(DEFAULT_URL, url)
      .replaceAll(/\$\{(?:env:)?SVC_API_KEY\}|\$\{input:svc-key\}|(?<=")KEY(?=")/g, key);
    assert.doesNotMatch(filled, /\$\{/, place);
    const { mcpServers, servers } = JSON.parse(filled) as Record<string, Record<string, Entry> | undefined>;
    const entry = (mcpServers ?? servers)?.['svc'];
    assert.ok(entry !== undefined, place);
    if (entry.command !== undefined) assert.deepEqual([entry.command, entry.args], ['svc', ['mcp']], place);
    const client =
      entry.url === undefined
        ? await openStdioClient(SVC, entry.env ?? {})
        : (await openClient(entry.url.replace(/\/mcp$/, ''), entry.headers ?? {})).client;
    try {
      const { tools } = await client.listTools();
      assert.deepEqual(
        tools.map(({ name }) => name),
        TOOL_LIST,
        place,
      );
    } finally {
      await client.close();
    }
  }
});
