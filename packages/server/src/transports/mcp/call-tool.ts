import {
  ErrorCode,
  McpError,
  type CallToolRequest,
  type CallToolResult,
} from '@modelcontextprotocol/sdk/types.js';
import { PlatformError } from '@svc/contract';
import type { Logger } from 'pino';
import type { Caller } from '../../access/caller.ts';
import type { Dispatch } from '../../dispatch/dispatch.ts';
import type { Progress } from '../../sandboxes/start-progress.ts';
import { describeFailure } from '../rpc/describe-failure.ts';
import { inWordsOfTools } from './next-step.ts';
import { isToolName, operationOf, showOutput, TOOL_LIST } from './tools.ts';

export interface ToolCall {
  readonly params: CallToolRequest['params'];
  readonly caller: Caller;
  readonly requestId: string;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: Progress) => void;
}

/**
 * A failed call is a result too, with the reason as its text, because a model sees results only.
 * @throws McpError when there is no such tool
 */
export async function callTool(dispatch: Dispatch, logger: Logger, call: ToolCall): Promise<CallToolResult> {
  const { name, arguments: input = {} } = call.params;
  if (!isToolName(name)) throw new McpError(ErrorCode.InvalidParams, unknownTool(name));
  const operation = operationOf(name);
  const { requestId, signal, onProgress } = call;
  try {
    const output = await dispatch.call(operation, input, call.caller, { requestId, signal, onProgress });
    const { text, structured } = showOutput(name, output);
    return { content: [{ type: 'text', text }], structuredContent: structured };
  } catch (error) {
    if (!PlatformError.is(error) && !signal.aborted) {
      logger.error({ err: error, operation, requestId }, 'a call met a bug');
    }
    const { message, data } = describeFailure(operation, error, requestId).error;
    return {
      isError: true,
      content: [{ type: 'text', text: inWordsOfTools(message, data) }, ...outputSoFar(data)],
      _meta: { error: data },
    };
  }
}

function unknownTool(name: string): string {
  return `Unknown tool: ${name}; the tools are ${TOOL_LIST.join(', ')}`;
}

/** Of a command that was ended by its timeout. */
function outputSoFar(data: Readonly<Record<string, unknown>> | null): { type: 'text'; text: string }[] {
  const streams = [data?.['output'], data?.['error']];
  return streams
    .filter((stream) => typeof stream === 'string' && stream !== '')
    .map((text) => ({ type: 'text', text: text as string }));
}
