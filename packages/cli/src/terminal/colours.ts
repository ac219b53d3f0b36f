import { showLine } from '@svc/contract/visible';
import { styleText } from 'node:util';

type Style = Parameters<typeof styleText>[0];

/** Text with colours, which are ours. */
export interface Painted {
  readonly text: string;
  readonly drawn: string;
}

/** Paints text, or leaves it as it is where colours are unwanted. */
export type Paint = (style: Style, text: string) => Painted;

export function painter(hasColours: boolean): Paint {
  return (style, given) => {
    const text = showLine(given);
    return { text, drawn: hasColours ? styleText(style, text, { validateStream: false }) : text };
  };
}
