import { Server } from '@modelcontextprotocol/sdk/server/index.js';
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
  type Tool,
} from '@modelcontextprotocol/sdk/types.js';
import { PlatformError } from '@svc/contract';
import { API_VERSION } from '@svc/contract/rest';
import type { Logger } from 'pino';
import { ownerOfCaller, type FairLimit } from '../../access/fair-limit.ts';
import type { Dispatch } from '../../dispatch/dispatch.ts';
import { callTool } from './call-tool.ts';
import { callerOf, type ToolExtra } from './caller-info.ts';
import { describePrompts, getPrompt } from './prompts.ts';
import { ProgressReports } from './progress-reports.ts';
import { serveResources } from './resources.ts';
import { SessionLog } from './session-log.ts';
import { describeTools } from './tools.ts';
import type { ToolCaller, Workbench } from './toolbox/tool-context.ts';

const INSTRUCTIONS =
  'Runs code and programs in isolated sandboxes. Start one with sandbox_start, use it with sandbox_run_code and ' +
  'sandbox_run_command, and stop it with sandbox_stop. Files are read, written and edited with sandbox_read_file, ' +
  'sandbox_write_file and sandbox_edit_file; what runs long, such as a web server, is started with sandbox_start_process and shown ' +
  'to people with sandbox_preview_url. Sandboxes are addressed by a name within a namespace: 1–63 letters, digits, ' +
  'hyphens or underscores each, beginning with a letter or digit.';

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
  readonly calls: FairLimit;
  readonly workbench: Workbench;
  readonly extras?: McpExtras | undefined;
}

/** What one session talks to. */
export function createMcpServer(parts: McpServerParts): Server {
  const { extras } = parts;
  const server = new Server(
    { name: 'svc', title: 'svc sandboxes', version: API_VERSION },
    {
      capabilities: { tools: {}, prompts: {}, resources: {}, logging: {}, ...extras?.capabilities },
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
  serveResources(server, parts.workbench, (extra, work) => withShare(parts.calls, extra, log, work));
  extras?.serveResources(server);
  return server;
}

function serveTools(server: Server, parts: McpServerParts, log: SessionLog): void {
  const { extras, calls } = parts;
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
    const answer = extras?.callTool(params, extra, log);
    if (answer !== undefined) return await answer;
    try {
      return await withShare(calls, extra, log, (call) => callTool(parts, { params, ...call }));
    } catch (error) {
      if (!PlatformError.is(error)) throw error;
      return { isError: true, content: [{ type: 'text', text: error.message }] };
    }
  });
}

/** Takes one of the places of the caller for as long as the work lasts. @throws PlatformError when there is none */
async function withShare<T>(
  calls: FairLimit,
  extra: ToolExtra,
  log: SessionLog,
  work: (call: ToolCaller) => Promise<T>,
): Promise<T> {
  const known = callerOf(extra.authInfo);
  const leave = calls.enter(ownerOfCaller(known.caller));
  try {
    using progress = new ProgressReports({
      token: extra._meta?.progressToken,
      log,
      send: (notification) => extra.sendNotification(notification),
    });
    return await work({
      ...known,
      signal: extra.signal,
      onProgress: (step) => progress.report(step),
    });
  } finally {
    leave();
  }
}
