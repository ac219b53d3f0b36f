/** An element of a picture, as it was written; text between elements is a string. */
export interface SvgElement {
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
  readonly children: readonly (SvgElement | string)[];
}

interface OpenElement extends SvgElement {
  readonly children: (SvgElement | string)[];
}

const MAX_DEPTH = 60;
const PROLOG =
  /^\uFEFF?\s*(?:<\?xml[^<>]*\?>\s*)?(?:<!--[^]*?-->\s*)*(?:<!DOCTYPE\s[^[\]<>]*>\s*)?(?:<!--[^]*?-->\s*)*/;
const PART =
  /<!--[^]*?-->|<!\[CDATA\[([^]*?)\]\]>|<\/([\w:.-]+)\s*>|<([\w:.-]+)((?:\s+[\w:.-]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*(\/?)>|([^<]+)/y;
const ATTRIBUTE = /([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g;
const ENTITY = /&(?:(lt|gt|amp|quot|apos)|#(\d{1,7})|#x([0-9a-f]{1,6}));/gi;
const NAMED: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };

/**
 * The elements of an SVG that is written plainly: no entities of its own, no instructions, nothing that could be read in two ways. Null
 * for any other, and for more elements than `most`. The policy of the page lets nobody have the browser make elements of text.
 */
export function readSvg(text: string, most: number): SvgElement | null {
  const top: OpenElement = { name: '', attributes: new Map(), children: [] };
  const open = [top];
  let count = 0;
  PART.lastIndex = PROLOG.exec(text)?.[0].length ?? 0;
  while (PART.lastIndex < text.length) {
    const part = PART.exec(text);
    if (part === null) return null;
    const [, data, closed, opened, attributes = '', isEmpty, between] = part;
    const into = open.at(-1) ?? top;
    if (opened !== undefined) {
      const read = readAttributes(attributes);
      count += 1;
      if (read === null || count > most || open.length > MAX_DEPTH) return null;
      const element: OpenElement = { name: opened, attributes: read, children: [] };
      into.children.push(element);
      if (isEmpty === '') open.push(element);
    } else if (closed !== undefined) {
      if (into === top || into.name !== closed) return null;
      open.pop();
    } else {
      const said = data ?? (between === undefined ? '' : decode(between));
      if (said === null) return null;
      if (said !== '') into.children.push(said);
    }
  }
  const elements = top.children.filter((child) => typeof child !== 'string' || child.trim() !== '');
  const [root] = elements;
  if (open.length > 1 || elements.length !== 1 || root === undefined || typeof root === 'string') return null;
  return root;
}

/** As it was, or what it became. */
export function writeSvg({ name, attributes, children }: SvgElement): string {
  const said = [...attributes].map(([key, value]) => ` ${key}="${encode(value)}"`).join('');
  const inner = children
    .map((child) => (typeof child === 'string' ? encode(child) : writeSvg(child)))
    .join('');
  return `<${name}${said}>${inner}</${name}>`;
}

function readAttributes(text: string): ReadonlyMap<string, string> | null {
  const read = new Map<string, string>();
  for (const [, name = '', double, single] of text.matchAll(ATTRIBUTE)) {
    const value = decode(double ?? single ?? '');
    if (value === null || read.has(name)) return null;
    read.set(name, value);
  }
  return read;
}

/** Null when something in it has a meaning that we do not know. */
function decode(text: string): string | null {
  if (text.replaceAll(ENTITY, '').includes('&')) return null;
  return text.replaceAll(ENTITY, (_, name?: string, decimal?: string, hex?: string) => {
    if (name !== undefined) return NAMED[name.toLowerCase()] ?? '';
    const code = decimal === undefined ? parseInt(hex ?? '', 16) : Number(decimal);
    return code > 0x10ffff ? '\uFFFD' : String.fromCodePoint(code);
  });
}

function encode(text: string): string {
  return (
    text
      .toWellFormed()
      // oxlint-disable-next-line no-control-regex -- no XML has these
      .replaceAll(/[\u0000-\u0008\u000B\u000C\u000E-\u001F\uFFFE\uFFFF]/g, '')
      .replaceAll('&', '&amp;')
      .replaceAll('<', '&lt;')
      .replaceAll('>', '&gt;')
      .replaceAll('"', '&quot;')
  );
}
