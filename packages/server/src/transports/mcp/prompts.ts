import { ErrorCode, McpError, type GetPromptResult, type Prompt } from '@modelcontextprotocol/sdk/types.js';
import { DEFAULT_NAMESPACE } from '@svc/contract';

const PROMPTS = {
  create_python_sandbox: { kind: 'Python', image: 'python', language: 'python', example: 'print(6 * 7)' },
  create_node_sandbox: { kind: 'Node.js', image: 'node', language: 'node', example: 'console.log(6 * 7)' },
} as const;

export type PromptName = keyof typeof PROMPTS;

export function isPromptName(name: string): name is PromptName {
  return Object.hasOwn(PROMPTS, name);
}

export function describePrompts(): Prompt[] {
  return Object.entries(PROMPTS).map(([name, { kind, image }]) => ({
    name,
    title: `Create a ${kind} sandbox`,
    description: `Start a sandbox for ${kind} code, try it, and stop it when the work is done`,
    arguments: [
      {
        name: 'sandbox_name',
        description: `Name of the sandbox; ${defaultName(image)} unless given`,
        required: false,
      },
      { name: 'namespace', description: `Namespace; ${DEFAULT_NAMESPACE} unless given`, required: false },
    ],
  }));
}

/** @throws McpError when there is no such prompt */
export function getPrompt(name: string, given: Readonly<Record<string, string>>): GetPromptResult {
  if (!isPromptName(name)) throw new McpError(ErrorCode.InvalidParams, `Unknown prompt: ${name}`);
  const { kind, image, language, example } = PROMPTS[name];
  const sandbox = given['sandbox_name'] ?? defaultName(image);
  const namespace = given['namespace'] ?? DEFAULT_NAMESPACE;
  const reference = { sandbox, namespace };
  const text = [
    `Create a ${kind} sandbox named "${sandbox}" in the namespace "${namespace}" and use it for the code of this conversation.`,
    '',
    `1. Call sandbox_start with ${JSON.stringify({ ...reference, config: { image } })}.`,
    `2. Check it: call sandbox_run_code with ${JSON.stringify({ ...reference, language, code: example })}; the output is 42.`,
    '3. Run further code with sandbox_run_code, where variables stay from call to call, and programs with sandbox_run_command.',
    `4. When the work is done, call sandbox_stop with ${JSON.stringify(reference)}.`,
  ].join('\n');
  return {
    description: `Start and use a ${kind} sandbox`,
    messages: [{ role: 'user', content: { type: 'text', text } }],
  };
}

function defaultName(image: string): string {
  return `${image}-sandbox`;
}
