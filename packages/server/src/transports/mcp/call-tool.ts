import {
  ErrorCode,
  McpError,
  type CallToolRequest,
  type CallToolResult,
  type ContentBlock,
} from '@modelcontextprotocol/sdk/types.js';
import { PlatformError, type CodeRunResult } from '@svc/contract';
import { isWorkToolName } from '@svc/contract/mcp';
import type { Logger } from 'pino';
import type { Dispatch } from '../../dispatch/dispatch.ts';
import { describeFailure } from '../rpc/describe-failure.ts';
import { boundFailure, boundStreams } from './bound-output.ts';
import { contentOfResults } from './result-content.ts';
import { inWordsOfTools, MORE_MEMORY, type FailureData } from './next-step.ts';
import { isToolName, operationOf, showOutput, TOOL_LIST, type ToolName } from './tools.ts';
import { runWorkTool } from './toolbox/run-work-tool.ts';
import { toResult } from './toolbox/to-result.ts';
import type { ToolCaller, Workbench } from './toolbox/tool-context.ts';

/** As handlers and the code runner end what a killed program wrote. */
const OUT_OF_MEMORY_NOTE =
  /^\[The (?:program|interpreter) was killed because the sandbox ran out of memory; .*\]\n$/m;

export interface ToolCall extends ToolCaller {
  readonly params: CallToolRequest['params'];
}

export interface ToolParts {
  readonly dispatch: Dispatch;
  readonly workbench: Workbench;
  readonly logger: Logger;
}

/**
 * A failed call is a result too, with the reason as its text, because a model sees results only.
 * @throws McpError when there is no such tool
 */
export async function callTool(parts: ToolParts, call: ToolCall): Promise<CallToolResult> {
  const { name, arguments: input = {} } = call.params;
  const run = runnerOf(parts, name, input, call);
  if (run === undefined) throw new McpError(ErrorCode.InvalidParams, unknownTool(name));
  const { requestId, signal, caller } = call;
  try {
    return await run();
  } catch (error) {
    if (!PlatformError.is(error) && !signal.aborted) {
      parts.logger.error({ err: error, tool: name, requestId }, 'a call met a bug');
    }
    const { message, data } = boundFailure(failureOf(name, error, requestId));
    return {
      isError: true,
      content: [{ type: 'text', text: inWordsOfTools(message, data, caller) }, ...outputSoFar(data)],
      _meta: { error: data },
    };
  }
}

/** @returns undefined when there is no such tool */
function runnerOf(
  parts: ToolParts,
  name: string,
  input: Readonly<Record<string, unknown>>,
  call: ToolCall,
): (() => Promise<CallToolResult>) | undefined {
  if (isToolName(name)) return () => callMethod(parts, name, input, call);
  if (isWorkToolName(name)) return () => runWorkTool(parts.workbench, name, input, call);
  return undefined;
}

async function callMethod(
  { dispatch, workbench }: ToolParts,
  name: ToolName,
  input: Readonly<Record<string, unknown>>,
  call: ToolCall,
): Promise<CallToolResult> {
  const { caller, requestId, signal, onProgress } = call;
  const asked = name === 'sandbox_run_code' ? { ...input, results: true } : input;
  const answered = await dispatch.call(operationOf(name), asked, caller, { requestId, signal, onProgress });
  const { output, shown } = separateResults(answered, input['results'] === true);
  const bounded = await boundStreams(workbench, call, input, output);
  const { text, fields, isText } = showOutput(name, bounded.output);
  const content = [{ type: 'text', text } as const, ...bounded.links, ...shown, ...wayOut(bounded.output)];
  return toResult(content, fields, isText);
}

/** A program that was killed leaves its sandbox running as small as it is: the same again would end the same way. */
function wayOut(output: unknown): ContentBlock[] {
  const { error } = output as { readonly error?: unknown };
  const isOut = typeof error === 'string' && OUT_OF_MEMORY_NOTE.test(error);
  return isOut ? [{ type: 'text', text: MORE_MEMORY }] : [];
}

/** What code showed is content that models look at; with the fields it is for callers that asked for it there. */
function separateResults(
  output: unknown,
  isAsked: boolean,
): { readonly output: unknown; readonly shown: readonly ContentBlock[] } {
  if (typeof output !== 'object' || output === null || !('results' in output)) return { output, shown: [] };
  const { results, ...rest } = output;
  // The operation of `sandbox_run_code` alone answers with them.
  const shown = contentOfResults(results as readonly CodeRunResult[]);
  return { output: isAsked ? output : rest, shown };
}

function failureOf(
  name: string,
  error: unknown,
  requestId: string,
): { readonly message: string; readonly data: FailureData } {
  if (isToolName(name)) return describeFailure(operationOf(name), error, requestId).error;
  if (PlatformError.is(error))
    return { message: error.message, data: { code: error.code, ...error.details } };
  const message = `the server met a bug; its log says more under request ${requestId}`;
  return { message, data: { code: 'internal', request_id: requestId } };
}

function unknownTool(name: string): string {
  return `Unknown tool: ${name}; the tools are ${TOOL_LIST.join(', ')}`;
}

/** Of a command that was ended by its timeout, or with its sandbox. */
function outputSoFar(data: FailureData): ContentBlock[] {
  const streams = [data?.['output'], data?.['error']];
  return streams
    .filter((stream) => typeof stream === 'string' && stream !== '')
    .map((text) => ({ type: 'text', text: text as string }));
}
