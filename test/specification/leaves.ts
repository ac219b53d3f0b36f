import assert from 'node:assert/strict';
import type { Command } from 'commander';
import { ERROR_STATUS, OPERATIONS } from '@svc/contract';
import { CreateSandboxRequest, REST_OPERATIONS, Sandbox } from '@svc/contract/rest';
import { createProgram } from '../../packages/cli/src/program.ts';
import { describePrompts } from '../../packages/server/src/transports/mcp/prompts.ts';
import { describeTools } from '../../packages/server/src/transports/mcp/tools.ts';
import { RPC_CODE } from '../../packages/server/src/transports/http/rpc-envelope.ts';
import { isRpcMethod } from '../../packages/server/src/transports/rpc/methods.ts';
import { LeafCollector, type Leaf } from './leaf-collector.ts';

const SPEC = 'spec';

/** Everything that the contract and the command line name and that a row of the table must therefore be about. */
export async function readLeaves(): Promise<readonly Leaf[]> {
  const leaves = new LeafCollector();
  collectSandbox(leaves);
  collectAnswers(leaves);
  collectRpc(leaves);
  for (const [code, status] of Object.entries(ERROR_STATUS)) leaves.add(`error.${code}`, `status ${status}`);
  for (const { name } of describeTools()) leaves.add(`mcp.tool.${name}`, 'tool');
  for (const { name, arguments: given = [] } of describePrompts()) {
    leaves.add(`mcp.prompt.${name}`, 'prompt');
    for (const argument of given) leaves.add(`mcp.prompt.${name}.${argument.name}`, 'string');
  }
  const server = (await createProgram(['server'])).commands.find((command) => command.name() === 'server');
  for (const command of server?.commands ?? []) collectFlags(leaves, command);
  return leaves.all;
}

/** A field that the request and the answer both have is one leaf, below `spec`; `requested` has the fields of `spec`. */
function collectSandbox(leaves: LeafCollector): void {
  const { spec, requested, ...record } = Sandbox.properties;
  assert.deepEqual(Object.keys(requested.properties), Object.keys(spec.properties));
  leaves.add('sandbox.requested', 'object', 'answer');
  for (const [name, schema] of Object.entries(record)) leaves.walk(`sandbox.${name}`, schema, 'answer');
  for (const [name, schema] of Object.entries(spec.properties))
    leaves.walk(`${SPEC}.${name}`, schema, 'answer');
  for (const [name, schema] of Object.entries(CreateSandboxRequest.properties)) {
    const isShown = name !== 'image' && Object.hasOwn(spec.properties, name);
    leaves.walk(`${isShown ? SPEC : 'create'}.${name}`, schema, 'request');
  }
}

/** Of the operations that the specification describes; every other one is in `test/e2e/outcomes`. */
function collectAnswers(leaves: LeafCollector): void {
  const { 'sandboxes.list': list, 'sandboxes.create': create } = REST_OPERATIONS;
  const { 'billing.getSandboxUsage': usage, 'volumeFiles.write': write } = REST_OPERATIONS;
  const { data: _items, ...page } = list.output.properties;
  leaves.add('page.data', 'array', 'answer');
  for (const [name, schema] of Object.entries(page)) leaves.walk(`page.${name}`, schema, 'answer');
  leaves.walk('query', list.query, 'request');
  leaves.walk('query', create.query, 'request');
  leaves.walk('query', usage.query, 'request');
  leaves.walk('usage', usage.output, 'answer');
  leaves.walk('message_response', REST_OPERATIONS['sandboxes.remove'].output, 'answer');
  leaves.walk('confirmation', write.output, 'answer');
  leaves.walk('headers', write.headers, 'request');
}

function collectRpc(leaves: LeafCollector): void {
  for (const [name, { input, output }] of Object.entries(OPERATIONS)) {
    if (!isRpcMethod(name)) continue;
    leaves.walk(`${name}.params`, input, 'request');
    leaves.walk(`${name}.result`, output, 'answer');
  }
  for (const code of Object.values(RPC_CODE)) leaves.add(`rpc.code.${code}`, 'integer');
}

function collectFlags(leaves: LeafCollector, command: Command): void {
  const line = `svc server ${command.name()}`;
  leaves.add(line, 'command');
  for (const option of command.createHelp().visibleOptions(command)) {
    if (option.long === '--help') continue;
    leaves.add(
      `${line} ${option.long ?? option.short ?? ''}`,
      option.flags.replace(/^.*?--[a-z-]+ ?/, '') || 'flag',
    );
  }
}
