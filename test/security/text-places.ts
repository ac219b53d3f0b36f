import type { RestOperation } from '@svc/contract/rest';

type Schema = Exclude<RestOperation['body'], string | null>;

/** As much of a schema as says where a text may stand. */
type Node = Schema & {
  readonly type?: string;
  readonly anyOf?: readonly Node[];
  readonly properties?: Readonly<Record<string, Node>>;
  readonly patternProperties?: Readonly<Record<string, Node>>;
  readonly items?: Node | readonly Node[];
  readonly enum?: unknown;
  readonly const?: unknown;
};

const KEY = '{}';
const ITEM = '[]';
const VALUE = '*';

/** Where a caller may write a text of their own: `rules[].destination.domain`; `labels.{}` are keys and `labels.*` values of a map. */
export function placesOfText(schema: Schema): readonly string[] {
  return [...new Set(walk(schema, []))];
}

function* walk(node: Node, at: readonly string[]): Generator<string> {
  if (node.enum !== undefined || node.const !== undefined) return;
  for (const branch of node.anyOf ?? []) yield* walk(branch, at);
  for (const [name, field] of Object.entries(node.properties ?? {})) yield* walk(field, [...at, name]);
  for (const value of Object.values(node.patternProperties ?? {})) {
    yield [...at, KEY].join('.');
    yield* walk(value, [...at, VALUE]);
  }
  for (const item of [node.items ?? []].flat()) yield* walk(item, [...at, ITEM]);
  if (node.type === 'string') yield at.join('.');
}

/** The example with another text at a place of it; undefined when it has nothing there. */
export function withText(example: unknown, place: string, change: (before: string) => string): unknown {
  const [step = '', ...rest] = place === '' ? [] : place.split('.');
  if (step === '') return typeof example === 'string' ? change(example) : undefined;
  if (typeof example !== 'object' || example === null) return undefined;
  if (step === KEY) {
    const [first, ...others] = Object.entries(example);
    return first && Object.fromEntries([[change(first[0]), first[1]], ...others]);
  }
  const isAny = step === ITEM || step === VALUE;
  if (Array.isArray(example) !== (step === ITEM)) return undefined;
  for (const [name, value] of Object.entries(example)) {
    if (!isAny && name !== step) continue;
    const changed = withText(value, rest.join('.'), change);
    if (changed === undefined) continue;
    return Array.isArray(example) ? example.with(Number(name), changed) : { ...example, [name]: changed };
  }
  return undefined;
}
