import type { ContentBlock } from '@modelcontextprotocol/sdk/types.js';
import type { WorkToolInput, WorkToolName, WorkToolOutput } from '@svc/contract/mcp';
import type { ToolScene } from './tool-scene.ts';

/** What a tool answers with: `output` of its schema, and what people and models read. */
export interface ToolAnswer<Output> {
  readonly structured: Output;
  readonly text: string;
  /** Behind the text. */
  readonly more?: readonly ContentBlock[];
}

export type WorkToolHandler<Name extends WorkToolName> = (
  input: WorkToolInput<Name>,
  scene: ToolScene,
) => Promise<ToolAnswer<WorkToolOutput<Name>>>;

export type WorkToolHandlers = { readonly [Name in WorkToolName]: WorkToolHandler<Name> };
