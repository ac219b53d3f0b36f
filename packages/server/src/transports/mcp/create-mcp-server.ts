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
  /** Takes one of the places for calls at work; false when all are taken. */
  readonly enter: () => boolean;
  readonly leave: () => void;
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
  const { dispatch, logger, fixtures, enter, leave } = parts;
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
    const answer = fixtures?.callTool(params, extra, log);
    if (answer !== undefined) return await answer;
    if (!enter()) {
      const { message } = new PlatformError('unavailable', 'the server is busy; try again in a moment');
      return { isError: true, content: [{ type: 'text', text: message }] };
    }
    const onProgress = reportProgress(extra._meta?.progressToken, log, (news) =>
      extra.sendNotification(news),
    );
    const { signal } = extra;
    try {
      return await callTool(dispatch, logger, { params, ...callerOf(extra.authInfo), signal, onProgress });
    } finally {
      leave();
    }
  });
}
