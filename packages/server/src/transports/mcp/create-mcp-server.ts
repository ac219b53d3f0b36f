import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import {
  CallToolRequestSchema,
  GetPromptRequestSchema,
  ListPromptsRequestSchema,
  ListToolsRequestSchema,
  SetLevelRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { PlatformError } from '@svc/contract';
import { API_VERSION } from '@svc/contract/rest';
import type { Logger } from 'pino';
import { ownerOfCaller, type CallShares } from '../../access/call-shares.ts';
import type { Dispatch } from '../../dispatch/dispatch.ts';
import { callTool } from './call-tool.ts';
import { callerOf } from './caller-info.ts';
import type { ConformanceFixtures } from './conformance-fixtures.ts';
import { describePrompts, getPrompt } from './prompts.ts';
import { reportProgress } from './progress-reports.ts';
import { SessionLog } from './session-log.ts';
import { describeTools } from './tools.ts';

const INSTRUCTIONS =
  'Runs code and programs in isolated sandboxes. Start one with sandbox_start, use it with sandbox_run_code and ' +
  'sandbox_run_command, and stop it with sandbox_stop. Sandboxes are addressed by a name within a namespace.';

export interface McpServerParts {
  readonly dispatch: Dispatch;
  readonly logger: Logger;
  readonly fixtures: ConformanceFixtures | undefined;
  readonly calls: CallShares;
}

/** What one session talks to. */
export function createMcpServer(parts: McpServerParts): Server {
  const { fixtures } = parts;
  const server = new Server(
    { name: 'svc', title: 'svc sandboxes', version: API_VERSION },
    {
      capabilities: { tools: {}, prompts: {}, logging: {}, ...fixtures?.capabilities },
      instructions: INSTRUCTIONS,
    },
  );
  const log = new SessionLog();
  server.setRequestHandler(SetLevelRequestSchema, ({ params }) => {
    log.level = params.level;
    return {};
  });
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: [...describeTools(), ...(fixtures?.tools ?? [])],
  }));
  server.setRequestHandler(ListPromptsRequestSchema, () => ({
    prompts: [...describePrompts(), ...(fixtures?.prompts ?? [])],
  }));
  server.setRequestHandler(GetPromptRequestSchema, ({ params }) => {
    const { name, arguments: given = {} } = params;
    return fixtures?.getPrompt(name, given) ?? getPrompt(name, given);
  });
  serveTools(server, parts, log);
  fixtures?.serveResources(server);
  return server;
}

function serveTools(server: Server, parts: McpServerParts, log: SessionLog): void {
  const { dispatch, logger, fixtures, calls } = parts;
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
    const answer = fixtures?.callTool(params, extra, log);
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
