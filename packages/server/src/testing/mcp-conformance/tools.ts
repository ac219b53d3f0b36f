import { setTimeout as delay } from 'node:timers/promises';
import {
  CreateMessageResultSchema,
  ElicitResultSchema,
  type CallToolRequest,
  type CallToolResult,
  type ElicitRequestFormParams,
  type Tool,
} from '@modelcontextprotocol/sdk/types.js';
import { IMAGE, text, WAV } from './content.ts';
import { DEFAULTS_FORM, ENUMS_FORM, USER_FORM } from './forms.ts';
import type { ToolExtra } from '../../transports/mcp/caller-info.ts';
import type { SessionLog } from '../../transports/mcp/session-log.ts';

const STEP_MS = 50;

type Content = CallToolResult['content'];
type Run = (call: {
  readonly input: Readonly<Record<string, unknown>>;
  readonly extra: ToolExtra;
  readonly log: SessionLog;
}) => Content | Promise<Content>;

interface FixtureTool {
  readonly inputSchema?: Tool['inputSchema'];
  readonly run: Run;
}

const RESOURCE = {
  uri: 'test://embedded-resource',
  mimeType: 'text/plain',
  text: 'This is an embedded resource content.',
};
const MIXED_RESOURCE = {
  uri: 'test://mixed-content-resource',
  mimeType: 'application/json',
  text: JSON.stringify({ test: 'data', value: 123 }),
};

const TOOLS: Readonly<Record<string, FixtureTool>> = {
  test_simple_text: { run: () => [text('This is a simple text response for testing.')] },
  test_image_content: { run: () => [IMAGE] },
  test_audio_content: { run: () => [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }] },
  test_embedded_resource: { run: () => [{ type: 'resource', resource: RESOURCE }] },
  test_multiple_content_types: {
    run: () => [text('Multiple content types test:'), IMAGE, { type: 'resource', resource: MIXED_RESOURCE }],
  },
  test_error_handling: {
    run: () => {
      throw new Error('This tool intentionally returns an error for testing');
    },
  },
  test_tool_with_logging: { run: logThreeTimes },
  test_tool_with_progress: { run: progressThreeTimes },
  test_sampling: { inputSchema: needs('prompt'), run: askModel },
  test_elicitation: {
    inputSchema: needs('message'),
    run: ({ input, extra }) =>
      askUser(extra, { message: String(input['message']), requestedSchema: USER_FORM }),
  },
  test_elicitation_sep1034_defaults: {
    run: ({ extra }) => askUser(extra, { message: 'Review the defaults', requestedSchema: DEFAULTS_FORM }),
  },
  test_elicitation_sep1330_enums: {
    run: ({ extra }) => askUser(extra, { message: 'Choose', requestedSchema: ENUMS_FORM }),
  },
  test_reconnection: { run: dropStream },
  json_schema_2020_12_tool: {
    inputSchema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      $defs: {
        address: { type: 'object', properties: { street: { type: 'string' }, city: { type: 'string' } } },
      },
      properties: { name: { type: 'string' }, address: { $ref: '#/$defs/address' } },
      additionalProperties: false,
    },
    run: ({ input }) => [text(JSON.stringify(input))],
  },
};

export const FIXTURE_TOOLS: readonly Tool[] = Object.entries(TOOLS).map(([name, { inputSchema }]) => ({
  name,
  description: 'For conformance tests',
  inputSchema: inputSchema ?? { type: 'object', properties: {} },
}));

export function callFixtureTool(
  { name, arguments: input = {} }: CallToolRequest['params'],
  extra: ToolExtra,
  log: SessionLog,
): Promise<CallToolResult> | undefined {
  const tool = Object.hasOwn(TOOLS, name) ? TOOLS[name] : undefined;
  return tool === undefined ? undefined : call(tool, { input, extra, log });
}

async function call(tool: FixtureTool, given: Parameters<Run>[0]): Promise<CallToolResult> {
  try {
    return { content: await tool.run(given) };
  } catch (error) {
    return { isError: true, content: [text(error instanceof Error ? error.message : String(error))] };
  }
}

async function logThreeTimes({ extra, log }: Parameters<Run>[0]): Promise<Content> {
  for (const message of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
    await log.write('info', message, (notification) => extra.sendNotification(notification));
    await delay(STEP_MS);
  }
  return [text('Logged three messages.')];
}

async function progressThreeTimes({ extra }: Parameters<Run>[0]): Promise<Content> {
  const progressToken = extra._meta?.progressToken;
  for (const progress of [0, 50, 100]) {
    if (progressToken !== undefined) {
      const params = { progressToken, progress, total: 100 };
      await extra.sendNotification({ method: 'notifications/progress', params });
    }
    await delay(STEP_MS);
  }
  return [text('Reported progress three times.')];
}

async function askModel({ input, extra }: Parameters<Run>[0]): Promise<Content> {
  const content = text(String(input['prompt']));
  const params = { messages: [{ role: 'user' as const, content }], maxTokens: 100 };
  const answer = await extra.sendRequest(
    { method: 'sampling/createMessage', params },
    CreateMessageResultSchema,
  );
  return [
    text(`LLM response: ${answer.content.type === 'text' ? answer.content.text : answer.content.type}`),
  ];
}

async function askUser(extra: ToolExtra, params: ElicitRequestFormParams): Promise<Content> {
  const { action, content } = await extra.sendRequest(
    { method: 'elicitation/create', params },
    ElicitResultSchema,
  );
  return [text(`Elicitation completed: action=${action}, content=${JSON.stringify(content ?? {})}`)];
}

/** The client reconnects for the answer. */
async function dropStream({ extra }: Parameters<Run>[0]): Promise<Content> {
  extra.closeSSEStream?.();
  await delay(2 * STEP_MS);
  return [text('The stream was closed and resumed.')];
}

function needs(argument: string): Tool['inputSchema'] {
  return { type: 'object', properties: { [argument]: { type: 'string' } }, required: [argument] };
}
