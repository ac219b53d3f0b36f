import type { GetPromptResult, Prompt } from '@modelcontextprotocol/sdk/types.js';
import { IMAGE, text } from './content.ts';

type Given = Readonly<Record<string, string>>;
type Content = GetPromptResult['messages'][number]['content'];

const PROMPTS: Readonly<
  Record<string, { readonly needs: readonly string[]; readonly say: (given: Given) => Content[] }>
> = {
  test_simple_prompt: { needs: [], say: () => [text('This is a simple prompt for testing.')] },
  test_prompt_with_arguments: {
    needs: ['arg1', 'arg2'],
    say: ({ arg1, arg2 }) => [text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)],
  },
  test_prompt_with_embedded_resource: {
    needs: ['resourceUri'],
    say: ({ resourceUri = '' }) => [
      {
        type: 'resource',
        resource: {
          uri: resourceUri,
          mimeType: 'text/plain',
          text: 'Embedded resource content for testing.',
        },
      },
      text('Please process the embedded resource above.'),
    ],
  },
  test_prompt_with_image: { needs: [], say: () => [IMAGE, text('Please analyze the image above.')] },
};

export const FIXTURE_PROMPTS: readonly Prompt[] = Object.entries(PROMPTS).map(([name, { needs }]) => ({
  name,
  description: 'For conformance tests',
  arguments: needs.map((argument) => ({
    name: argument,
    description: 'For conformance tests',
    required: true,
  })),
}));

export function getFixturePrompt(name: string, given: Given): GetPromptResult | undefined {
  const prompt = Object.hasOwn(PROMPTS, name) ? PROMPTS[name] : undefined;
  if (prompt === undefined) return undefined;
  return { messages: prompt.say(given).map((content) => ({ role: 'user', content })) };
}
