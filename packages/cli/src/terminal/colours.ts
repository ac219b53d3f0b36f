import { showLine } from '@svc/contract/visible';
import { styleText } from 'node:util';

type Style = Parameters<typeof styleText>[0];

/** Text with our colour sequences. */
export interface Painted {
  readonly text: string;
  readonly drawn: string;
}

/** Colours text, or returns it unchanged where colours are disabled. */
export type Paint = (style: Style, text: string) => Painted;

export function painter(hasColours: boolean): Paint {
  return (style, given) => {
    const text = showLine(given);
    return { text, drawn: hasColours ? styleText(style, text, { validateStream: false }) : text };
  };
}
