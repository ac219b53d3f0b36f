import { costOfPicture } from './picture-cost.ts';
import { readSvg, writeSvg, type SvgElement } from './read-svg.ts';

/** More is no chart, and is not read. */
const MAX_LENGTH = 2_000_000;
/** References to references, and elements in elements. */
const MAX_DEPTH = 60;
const MAX_SELECTORS = 50;
/** Of a style. */
const MAX_VALUE = 500;
/** Texts, and points of lines, that cost as much as an element; and dashes. */
const [CHARACTERS, DASHES] = [100, 20];

const words = (text: string): ReadonlySet<string> => new Set(text.split(/\s+/));

const DRAWN = words(
  'svg g defs path rect circle ellipse line polyline polygon text tspan use symbol clipPath linearGradient radialGradient stop image style',
);
/** Draw nothing. */
const SILENT = words('title desc metadata script');
const STYLES = words(
  `fill fill-opacity fill-rule stroke stroke-width stroke-opacity stroke-linecap stroke-linejoin stroke-miterlimit stroke-dasharray
  stroke-dashoffset opacity color display visibility font font-family font-size font-style font-weight text-anchor dominant-baseline
  baseline-shift alignment-baseline letter-spacing clip-path clip-rule stop-color stop-opacity white-space shape-rendering text-rendering`,
);
const LENGTHS = words('d points x1 y1 x2 y2 width height r rx ry');
const PLAIN = words(
  `id class x y dx dy cx cy transform viewBox preserveAspectRatio fx fy rotate offset gradientUnits gradientTransform spreadMethod clipPathUnits
  version`,
);
const SAFE_VALUE = /^[\w\s.,%#()+'"!-]*$/;
const FUNCTIONS = /\b(?!rgba?\(|hsla?\(|url\(#[\w.-]+\))[\w-]+\(/i;
/** Nothing that could be written in two ways. */
const REFERENCE = /^#[\w.-]+$/;
/** One that is not closed goes to the end. */
const COMMENT = /\/\*[^*]*(?:\*(?!\/)[^*]*)*(?:\*\/|$)/g;
const RULE = /([^{}]*)\{([^{}]*)\}\s*/y;
const SELECTOR = /^[\w*.#-]+(?: [\w*.#-]+)?$/;
const PICTURE = /^data:image\/(?:png|jpeg|gif|webp);base64,([A-Za-z0-9+/=\s]*)$/;

/**
 * An SVG of a sandbox, written anew of what is known to cost little, and what drawing it costs. Null: nothing vouches for it, for it has
 * what may cost anything (filters, masks, patterns, animations, markup of pages), refers to itself, or would cost more than `budget`.
 */
export function drawableSvg(
  text: string,
  budget: number,
): { readonly svg: string; readonly cost: number } | null {
  if (text.length > MAX_LENGTH) return null;
  const read = readSvg(text, budget);
  const root = read === null ? null : keepDrawn(read);
  if (root === null || root === undefined || root.name !== 'svg') return null;
  const cost = new Costs(root, budget).total();
  if (cost > budget) return null;
  const attributes = new Map([['xmlns', 'http://www.w3.org/2000/svg'], ...root.attributes]);
  return { svg: writeSvg({ ...root, attributes }), cost };
}

/** Undefined: it draws nothing. Null: not to be drawn. */
function keepDrawn({ name: given, attributes, children }: SvgElement): SvgElement | null | undefined {
  const name = given.replace(/^svg:/, '').replace(/^a$/, 'g');
  if (SILENT.has(name) || name.includes(':')) return undefined;
  if (!DRAWN.has(name)) return null;
  if (name === 'style') {
    const sheet = keepRules(children.map((child) => (typeof child === 'string' ? child : '@')).join(''));
    return sheet === null ? null : { name, attributes: new Map(), children: [sheet] };
  }
  const kept = children.map((child) => (typeof child === 'string' ? child : keepDrawn(child)));
  if (kept.includes(null)) return null;
  return {
    name,
    attributes: new Map([...attributes].flatMap(([key, value]) => keepAttribute(name, key, value))),
    children: kept.filter((child) => child !== undefined && child !== null),
  };
}

function keepAttribute(element: string, key: string, value: string): [string, string][] {
  if (key === 'style') return [[key, keepDeclarations(value, true)]];
  if (key === 'href' || key === 'xlink:href') {
    const isKept = element === 'image' ? PICTURE.test(value) : REFERENCE.test(value);
    return isKept ? [['href', value]] : [];
  }
  if (STYLES.has(key)) return isSafe(key, value, true) ? [[key, value]] : [];
  return LENGTHS.has(key) || PLAIN.has(key) ? [[key, value]] : [];
}

function keepDeclarations(text: string, mayRefer: boolean): string {
  return text
    .split(';')
    .map((declaration) => declaration.split(':').map((part) => part.trim()))
    .filter(
      ([key = '', value = '', ...more]) =>
        more.length === 0 && STYLES.has(key) && isSafe(key, value, mayRefer),
    )
    .map(([key, value]) => `${key}: ${value}`)
    .join('; ');
}

function isSafe(key: string, value: string, mayRefer: boolean): boolean {
  if (value.length > MAX_VALUE || !SAFE_VALUE.test(value) || FUNCTIONS.test(value)) return false;
  if (/url\(/i.test(value) && !mayRefer) return false;
  return key !== 'stroke-dasharray' || /^(?:none|[\d.,\s]+|(?:[\d.]+px[,\s]*)+)$/.test(value);
}

/** Of a style sheet; null when it has more than plain rules. */
function keepRules(text: string): string | null {
  const sheet = text.replaceAll(COMMENT, '').trim();
  const kept: string[] = [];
  let selectors = 0;
  for (RULE.lastIndex = 0; RULE.lastIndex < sheet.length;) {
    const [, given = '', body = ''] = RULE.exec(sheet) ?? [];
    const each = given.split(',').map((selector) => selector.trim());
    selectors += each.length;
    if (selectors > MAX_SELECTORS || !each.every((selector) => SELECTOR.test(selector))) return null;
    kept.push(`${each.join(', ')} { ${keepDeclarations(body, false)} }`);
  }
  return kept.join('\n');
}

/** What elements cost to draw, with all that they refer to, as often as they do. */
class Costs {
  readonly #root: SvgElement;
  readonly #budget: number;
  readonly #byId = new Map<string, SvgElement>();
  readonly #known = new Map<SvgElement, { readonly cost: number; readonly height: number }>();
  readonly #entered = new Set<SvgElement>();
  /** The shortest pattern of dashes, which may hold for any line. */
  #dash = Number.POSITIVE_INFINITY;
  /** What a hundred percent may be. */
  #extent = 0;

  constructor(root: SvgElement, budget: number) {
    this.#root = root;
    this.#budget = budget;
    this.#look(root);
  }

  /** Infinite where there is no end to it. */
  total(): number {
    return this.#of(this.#root, 0).cost;
  }

  #look(element: SvgElement): void {
    const { name, attributes, children } = element;
    const id = attributes.get('id');
    if (id !== undefined && !this.#byId.has(id)) this.#byId.set(id, element);
    const styles = [attributes.get('style') ?? '', ...(name === 'style' ? children.filter(isText) : [])];
    const dashes = styles.flatMap((style) =>
      [...style.matchAll(/stroke-dasharray: ([^;}]*)/g)].map(([, value = '']) => value),
    );
    for (const value of [attributes.get('stroke-dasharray') ?? '', ...dashes]) {
      const length = sumOf(value);
      if (length > 0) this.#dash = Math.min(this.#dash, length);
    }
    if (name === 'svg' || name === 'symbol')
      for (const key of ['viewBox', 'width', 'height']) this.#extent += sumOf(attributes.get(key) ?? '');
    for (const child of children) if (!isText(child)) this.#look(child);
  }

  #of(element: SvgElement, level: number): { readonly cost: number; readonly height: number } {
    const known = this.#known.get(element);
    if (known !== undefined) return level + known.height > MAX_DEPTH ? ENDLESS : known;
    if (level > MAX_DEPTH || this.#entered.has(element)) return ENDLESS;
    this.#entered.add(element);
    let cost = this.#own(element);
    let height = 0;
    for (const next of [...element.children.filter(isElement), ...this.#referred(element)]) {
      const part = this.#of(next, level + 1);
      cost += part.cost;
      height = Math.max(height, part.height + 1);
      if (cost > this.#budget) return ENDLESS;
    }
    this.#entered.delete(element);
    this.#known.set(element, { cost, height });
    return { cost, height };
  }

  #own({ name, attributes, children }: SvgElement): number {
    let [characters, length] = [0, 0];
    const [, picture] = (name === 'image' ? PICTURE.exec(attributes.get('href') ?? '') : null) ?? [];
    for (const [key, value] of attributes) {
      characters += value.length;
      if (LENGTHS.has(key)) length += lengthOf(value) + (value.includes('%') ? 4 * this.#extent : 0);
    }
    for (const child of children) if (isText(child)) characters += child.trim().length;
    const own = 1 + characters / CHARACTERS + length / this.#dash / DASHES;
    return picture === undefined ? own : own + costOfPicture(picture);
  }

  #referred({ attributes }: SvgElement): SvgElement[] {
    const ids = [...attributes].flatMap(([key, value]) =>
      key === 'href' ? [value.slice(1)] : [...value.matchAll(/url\(#([\w.-]+)\)/gi)].map(([, id = '']) => id),
    );
    return ids.flatMap((id) => this.#byId.get(id) ?? []);
  }
}

const ENDLESS = { cost: Number.POSITIVE_INFINITY, height: 0 };

function isElement(child: SvgElement | string): child is SvgElement {
  return typeof child !== 'string';
}

function isText(child: SvgElement | string): child is string {
  return typeof child === 'string';
}

/** No line that these numbers describe is longer. Points, one after the other, are what charts are made of. */
function lengthOf(value: string): number {
  const isPoints = /^[MLCQSTZz\d\s.,e+-]*$/.test(value) && /\d[\s,]+[-.\d]/.test(value);
  // What goes on from where a part was closed comes from its beginning.
  if (!isPoints || /z\s*[^M\s]/i.test(value)) return 4 * sumOf(value);
  const numbers = numbersIn(value);
  let length = 0;
  for (let at = 2; at < numbers.length; at++) length += Math.abs((numbers[at] ?? 0) - (numbers[at - 2] ?? 0));
  // Each of its parts may be closed.
  return 2 * length;
}

/** Of the amounts of all numbers in it. */
function sumOf(value: string): number {
  return numbersIn(value).reduce((sum, number) => sum + Math.abs(number), 0);
}

function numbersIn(value: string): number[] {
  return Array.from(value.matchAll(/-?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?/gi), ([number]) => Number(number));
}
