export { checkToolInput, isWorkToolName, WORK_TOOLS } from './tools.ts';
export type { WorkToolInput, WorkToolName, WorkToolOutput } from './tools.ts';
export type { ToolHints, ToolSchema } from './tool-schema.ts';
