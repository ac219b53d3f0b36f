import { describePrompts } from '../packages/server/src/transports/mcp/prompts.ts';
import { describeTools } from '../packages/server/src/transports/mcp/tools.ts';

interface Field {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly description?: string;
}

/** Every tool and prompt as clients see them. */
export function renderMcpReference(): string {
  const tools = describeTools().map(({ name, description = '', annotations = {}, inputSchema }) => {
    const { properties = {}, required = [] } = inputSchema;
    const rows = Object.entries(properties as Record<string, Field>).map(
      ([field, schema]) =>
        `| \`${field}\`${required.includes(field) ? ' (required)' : ''} | ${typeOf(schema)} | ${cell(schema.description ?? '')} |`,
    );
    const hints = Object.entries(annotations)
      .filter(([, value]) => value === true)
      .map(([hint]) => `\`${hint}\``);
    const head = `## \`${name}\`\n\n${description}\n\nHints: ${hints.length === 0 ? 'none' : hints.join(', ')}.`;
    return `${head}\n\n| Argument | Type | |\n|---|---|---|\n${rows.join('\n')}`;
  });
  const prompts = describePrompts().map(({ name, description = '' }) => `- \`${name}\`: ${description}`);
  return (
    [
      '# Tools of MCP',
      'Generated from the code: `make generate`. How to set it up: [MCP](../guides/mcp.md). Every `sandbox` and `namespace` is a name of 1–63 letters, digits, hyphens or underscores, the first one a letter or digit.',
      ...tools,
      '## Prompts',
      prompts.join('\n'),
      '',
    ]
      .join('\n\n')
      .trimEnd() + '\n'
  );
}

function typeOf({ type, enum: values }: Field): string {
  return values === undefined ? (type ?? '') : values.map((value) => `\`${value}\``).join(', ');
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}
