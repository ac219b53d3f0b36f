import assert from 'node:assert/strict';
import { OPERATIONS } from '@svc/contract';
import { WORK_TOOLS, type WorkToolName } from '@svc/contract/mcp';
import { describePrompts } from '../../../packages/server/src/transports/mcp/prompts.ts';
import { BUSYBOX } from '../../engine/start-engine.ts';
import { claim, claimOnce, provedBy, type Claim } from '../claim.ts';
import type { Ground, Json } from '../ground.ts';
import { LeafCollector } from '../leaf-collector.ts';
import { call } from './rpc-call.ts';

/** The result of a tool, which must not be an error. */
async function tool(ground: Ground, name: string, args: object): Promise<Json> {
  const result: Json = await ground.asMcp((client) =>
    client.callTool({ name, arguments: { namespace: 'mcp', ...args } }),
  );
  assert.notEqual(result.isError, true, JSON.stringify(result));
  return result;
}

async function mcpBox(ground: Ground): Promise<string> {
  return await ground.shared('mcp', async () => {
    const sandbox = ground.fresh('mcp');
    const { content } = await tool(ground, 'sandbox_start', {
      sandbox,
      config: { image: 'python', memory: 256 },
    });
    assert.equal(content[0].text, `Sandbox ${sandbox} started successfully`);
    return sandbox;
  });
}

/** Every field of a schema; that one may be null is left out where a model reads it. */
function fieldsOf(schema: object): readonly string[] {
  const leaves = new LeafCollector();
  leaves.walk('params', schema, 'request');
  return leaves.all.filter(({ type }) => type !== 'null').map(({ id }) => id);
}

const TOOL_METHODS = {
  sandbox_start: 'sandbox.start',
  sandbox_stop: 'sandbox.stop',
  sandbox_run_code: 'sandbox.repl.run',
  sandbox_run_command: 'sandbox.command.run',
  sandbox_get_metrics: 'sandbox.metrics.get',
} as const;

export const mcpClaims: readonly Claim[] = [
  claim(
    'mcp.tool.sandbox_start',
    'Starts a sandbox',
    'its text, and that a command can be run then',
    async (ground) => {
      const sandbox = await mcpBox(ground);
      assert.equal(
        (
          await call(ground, 'sandbox.command.run', {
            namespace: 'mcp',
            sandbox,
            command: 'echo',
            args: ['hi'],
          })
        ).output,
        'hi\n',
      );
    },
  ),
  claim(
    'mcp.tool.sandbox_run_code',
    'Runs code in a sandbox',
    'its text, and the status beside it',
    async (ground) => {
      const result = await tool(ground, 'sandbox_run_code', {
        sandbox: await mcpBox(ground),
        language: 'python',
        code: '6 * 7',
      });
      assert.deepEqual([result.content[0].text, result._meta.result.status], ['42\n', 'success']);
    },
  ),
  claim(
    'mcp.tool.sandbox_run_command',
    'Runs a program in a sandbox',
    'its text, and the exit code beside it',
    async (ground) => {
      const result = await tool(ground, 'sandbox_run_command', {
        sandbox: await mcpBox(ground),
        command: 'echo',
        args: ['hi'],
      });
      assert.deepEqual([result.content[0].text, result._meta.result.exit_code], ['hi\n', 0]);
    },
  ),
  claim(
    'mcp.tool.sandbox_get_metrics',
    'Shows sandboxes and what they use',
    'the sandbox is in it and runs',
    async (ground) => {
      const sandbox = await mcpBox(ground);
      const { structuredContent } = await tool(ground, 'sandbox_get_metrics', { sandbox });
      assert.deepEqual(
        [structuredContent.sandboxes[0].name, structuredContent.sandboxes[0].running],
        [sandbox, true],
      );
    },
  ),
  claim(
    'mcp.tool.sandbox_stop',
    'Stops a sandbox',
    'its text, and that the sandbox does not run then',
    async (ground) => {
      const sandbox = ground.fresh('ended');
      await tool(ground, 'sandbox_start', { sandbox, config: { image: BUSYBOX } });
      const { content } = await tool(ground, 'sandbox_stop', { sandbox });
      assert.equal(content[0].text, `Sandbox ${sandbox} stopped successfully`);
      assert.equal(
        (await call(ground, 'sandbox.metrics.get', { namespace: 'mcp', sandbox })).sandboxes[0].running,
        false,
      );
    },
  ),
  claimOnce(
    'rule.mcp-schemas',
    'The five tools take what the methods of JSON-RPC take, and say so',
    'the fields of the input schema of each tool',
    async (ground) => {
      const { tools } = await ground.asMcp((client) => client.listTools());
      const names = [...Object.keys(TOOL_METHODS), ...Object.keys(WORK_TOOLS)];
      assert.deepEqual(tools.map(({ name }) => name).toSorted(), names.toSorted());
      for (const { name, inputSchema, annotations } of tools) {
        const taken =
          name in TOOL_METHODS
            ? OPERATIONS[TOOL_METHODS[name as keyof typeof TOOL_METHODS]]
            : WORK_TOOLS[name as WorkToolName];
        assert.deepEqual(fieldsOf(inputSchema), fieldsOf(taken.input), name);
        assert.equal(typeof annotations?.readOnlyHint, 'boolean');
      }
    },
  ),
  claimOnce(
    'rule.mcp-failure',
    'A call that fails is a result that says why',
    'a command in an unknown sandbox',
    async (ground) => {
      const result: Json = await ground.asMcp((client) =>
        client.callTool({ name: 'sandbox_run_command', arguments: { sandbox: 'missing', command: 'true' } }),
      );
      assert.equal(result.isError, true);
      assert.match(result.content[0].text, /missing/);
    },
  ),
  claimOnce(
    'endpoint.mcp',
    '`/mcp` speaks the Model Context Protocol to the bearer of a key',
    'without a key it is 401',
    async (ground) => {
      const response = await fetch(`${ground.server.url}/mcp`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{}',
      });
      assert.equal(response.status, 401);
    },
  ),
  ...Object.entries(WORK_TOOLS).map(([name, { title }]) =>
    provedBy(
      `mcp.tool.${name}`,
      title,
      'test/e2e/mcp-tools.test.ts',
      'the official client works with every tool over ${transport}',
    ),
  ),
  ...describePrompts().map(({ name }) =>
    claimOnce(
      `mcp.prompt.${name}`,
      'A text that tells a model how to make and use such a sandbox',
      'it is listed, and names the tools, and the sandbox and namespace that it was given or its own',
      async (ground) => {
        const { prompts } = await ground.asMcp((client) => client.listPrompts());
        assert.ok(prompts.some((prompt) => prompt.name === name));
        const given = { sandbox_name: 'mine', namespace: 'ours' };
        const text = await ground.asMcp(async (client) =>
          JSON.stringify(await client.getPrompt({ name, arguments: given })),
        );
        for (const word of ['mine', 'ours', 'sandbox_start', 'sandbox_run_code', 'sandbox_stop'])
          assert.ok(text.includes(word), word);
        const usual = await ground.asMcp(async (client) =>
          JSON.stringify(await client.getPrompt({ name, arguments: {} })),
        );
        assert.match(usual, /-sandbox.*default/);
      },
      { covers: [`mcp.prompt.${name}.sandbox_name`, `mcp.prompt.${name}.namespace`] },
    ),
  ),
];
