import type { McpExtras } from '../../transports/mcp/create-mcp-server.ts';
import { FIXTURE_PROMPTS, getFixturePrompt } from './prompts.ts';
import { serveFixtureResources } from './resources.ts';
import { FIXTURE_TOOLS, callFixtureTool } from './tools.ts';

/** The tools, prompts and resources that the official conformance suite calls by name. They do nothing with sandboxes. */
export const CONFORMANCE_FIXTURES: McpExtras = {
  capabilities: { resources: { subscribe: true }, completions: {} },
  tools: FIXTURE_TOOLS,
  prompts: FIXTURE_PROMPTS,
  callTool: callFixtureTool,
  getPrompt: getFixturePrompt,
  serveResources: serveFixtureResources,
};
