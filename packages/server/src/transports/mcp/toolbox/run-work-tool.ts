import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { checkToolInput, WORK_TOOLS, type ToolSchema, type WorkToolName } from '@svc/contract/mcp';
import { requireReach } from '../../../access/caller.ts';
import { fileTools } from './file-tools.ts';
import { processTools } from './process-tools.ts';
import { sandboxTools } from './sandbox-tools.ts';
import { searchTools } from './search-tools.ts';
import { snapshotTools } from './snapshot-tools.ts';
import { toResult } from './to-result.ts';
import type { ToolAnswer, WorkToolHandlers } from './tool-answer.ts';
import { ToolContext, type ToolCaller, type Workbench } from './tool-context.ts';

/** One handler per tool; a missing one is a type error. */
const HANDLERS: WorkToolHandlers = {
  ...fileTools(),
  ...searchTools(),
  ...processTools(),
  ...sandboxTools(),
  ...snapshotTools(),
};

/** Validates the input, authorizes the caller, and runs the handler. @throws PlatformError */
export async function runWorkTool(
  bench: Workbench,
  name: WorkToolName,
  value: Readonly<Record<string, unknown>>,
  call: ToolCaller,
): Promise<CallToolResult> {
  const { input, namespace } = checkToolInput(name, value);
  requireReach(call.caller, namespace);
  const context = new ToolContext(bench, call, namespace);
  // Input and handler have the same name, which the type checker cannot follow through a union of names.
  const handler = HANDLERS[name] as (
    input: unknown,
    context: ToolContext,
  ) => Promise<ToolAnswer<Record<string, unknown>>>;
  const { structured, text, more = [] } = await handler(input, context);
  const schema: ToolSchema = WORK_TOOLS[name];
  return toResult([{ type: 'text', text }, ...more], structured, schema.isText === true);
}
