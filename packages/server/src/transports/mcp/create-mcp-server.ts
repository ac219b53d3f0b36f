import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js';
import {
  CallToolRequestSchema,
  GetPromptRequestSchema,
  ListPromptsRequestSchema,
  ListToolsRequestSchema,
  SetLevelRequestSchema,
  type CallToolRequest,
  type CallToolResult,
  type GetPromptResult,
  type Prompt,
  type ServerCapabilities,
  type ServerNotification,
  type ServerRequest,
  type Tool,
} from '@modelcontextprotocol/sdk/types.js';
import { PlatformError } from '@svc/contract';
import { API_VERSION } from '@svc/contract/rest';
import type { Logger } from 'pino';
import { ownerOfCaller, type CallShares } from '../../access/call-shares.ts';
import type { Dispatch } from '../../dispatch/dispatch.ts';
import { callTool } from './call-tool.ts';
import { callerOf } from './caller-info.ts';
import { describePrompts, getPrompt } from './prompts.ts';
import { reportProgress } from './progress-reports.ts';
import { SessionLog } from './session-log.ts';
import { describeTools } from './tools.ts';

const INSTRUCTIONS =
  'Runs code and programs in isolated sandboxes. Start one with sandbox_start, use it with sandbox_run_code and ' +
  'sandbox_run_command, and stop it with sandbox_stop. Sandboxes are addressed by a name within a namespace.';

export type ToolExtra = RequestHandlerExtra<ServerRequest, ServerNotification>;

/** What a server offers beside our own tools and prompts. The web process gives none; tests of the protocol bring theirs. */
export interface McpExtras {
  readonly capabilities: ServerCapabilities;
  readonly tools: readonly Tool[];
  readonly prompts: readonly Prompt[];
  /** @returns undefined when the name is none of theirs */
  callTool(
    params: CallToolRequest['params'],
    extra: ToolExtra,
    log: SessionLog,
  ): Promise<CallToolResult> | undefined;
  /** @returns undefined when the name is none of theirs */
  getPrompt(name: string, given: Readonly<Record<string, string>>): GetPromptResult | undefined;
  serveResources(server: Server): void;
}

export interface McpServerParts {
  readonly dispatch: Dispatch;
  readonly logger: Logger;
  /** Tool calls beyond a caller's share of those at work are refused instead of queued. */
  readonly calls: CallShares;
  readonly extras?: McpExtras | undefined;
}

/** What one session talks to. */
export function createMcpServer(parts: McpServerParts): Server {
  const { extras } = parts;
  const server = new Server(
    { name: 'svc', title: 'svc sandboxes', version: API_VERSION },
    {
      capabilities: { tools: {}, prompts: {}, logging: {}, ...extras?.capabilities },
      instructions: INSTRUCTIONS,
    },
  );
  const log = new SessionLog();
  server.setRequestHandler(SetLevelRequestSchema, ({ params }) => {
    log.level = params.level;
    return {};
  });
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: [...describeTools(), ...(extras?.tools ?? [])],
  }));
  server.setRequestHandler(ListPromptsRequestSchema, () => ({
    prompts: [...describePrompts(), ...(extras?.prompts ?? [])],
  }));
  server.setRequestHandler(GetPromptRequestSchema, ({ params }) => {
    const { name, arguments: given = {} } = params;
    return extras?.getPrompt(name, given) ?? getPrompt(name, given);
  });
  serveTools(server, parts, log);
  extras?.serveResources(server);
  return server;
}

function serveTools(server: Server, parts: McpServerParts, log: SessionLog): void {
  const { dispatch, logger, extras, calls } = parts;
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
    const answer = extras?.callTool(params, extra, log);
    if (answer !== undefined) return await answer;
    const known = callerOf(extra.authInfo);
    let leave: () => void;
    try {
      leave = calls.enter(ownerOfCaller(known.caller));
    } catch (error) {
      if (!PlatformError.is(error)) throw error;
      return { isError: true, content: [{ type: 'text', text: error.message }] };
    }
    const onProgress = reportProgress(extra._meta?.progressToken, log, (news) =>
      extra.sendNotification(news),
    );
    const { signal } = extra;
    try {
      return await callTool(dispatch, logger, { params, ...known, signal, onProgress });
    } finally {
      leave();
    }
  });
}
