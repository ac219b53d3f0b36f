import type { Server } from '@modelcontextprotocol/sdk/server/index.js';
import type {
  CallToolRequest,
  CallToolResult,
  GetPromptResult,
  Prompt,
  ServerCapabilities,
  Tool,
} from '@modelcontextprotocol/sdk/types.js';
import { FIXTURE_PROMPTS, getFixturePrompt } from './conformance-prompts.ts';
import { serveFixtureResources } from './conformance-resources.ts';
import { FIXTURE_TOOLS, callFixtureTool, type Extra } from './conformance-tools.ts';
import type { SessionLog } from './session-log.ts';

/**
 * The tools, prompts and resources that the official conformance suite calls by name. They do nothing with sandboxes, and a
 * server offers them only when it is told to.
 */
export interface ConformanceFixtures {
  readonly capabilities: ServerCapabilities;
  readonly tools: readonly Tool[];
  readonly prompts: readonly Prompt[];
  /** @returns undefined when the name is none of theirs */
  callTool(
    params: CallToolRequest['params'],
    extra: Extra,
    log: SessionLog,
  ): Promise<CallToolResult> | undefined;
  /** @returns undefined when the name is none of theirs */
  getPrompt(name: string, given: Readonly<Record<string, string>>): GetPromptResult | undefined;
  serveResources(server: Server): void;
}

export function createConformanceFixtures(): ConformanceFixtures {
  return {
    capabilities: { resources: { subscribe: true }, completions: {} },
    tools: FIXTURE_TOOLS,
    prompts: FIXTURE_PROMPTS,
    callTool: callFixtureTool,
    getPrompt: getFixturePrompt,
    serveResources: serveFixtureResources,
  };
}
