import { styleText } from 'node:util';

type Style = Parameters<typeof styleText>[0];

/** Paints text, or leaves it as it is where colours are unwanted. */
export type Paint = (style: Style, text: string) => string;

export function painter(hasColours: boolean): Paint {
  return hasColours
    ? (style, text) => styleText(style, text, { validateStream: false })
    : (_style, text) => text;
}
