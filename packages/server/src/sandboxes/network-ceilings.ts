import { PlatformError } from '@svc/contract/errors';
import { readCeiling, writeCeiling } from '@svc/engine/policy';

/** Upper bounds, set by the operator, of what sandboxes may reach, as targets of the engine. */
export interface NetworkCeilings {
  /** Applies to every organization without a ceiling of its own. */
  readonly installation: readonly string[];
  /** By slug. */
  readonly organizations: ReadonlyMap<string, readonly string[]>;
}

const EVERYTHING = ['all'];
const PUBLIC = ['public'];

export const NO_CEILINGS: NetworkCeilings = { installation: EVERYTHING, organizations: new Map() };

/** Values of the option: `TARGETS`, or `SLUG=TARGETS` for one organization. Each is given once. */
export function readCeilings(
  texts: readonly string[],
  { isDev }: { readonly isDev: boolean },
  problems: string[],
): NetworkCeilings {
  const read = new Map<string, readonly string[]>();
  for (const text of texts) {
    const { slug = '', targets = text } = /^(?<slug>[a-z0-9-]+)=(?<targets>.*)$/.exec(text)?.groups ?? {};
    if (read.has(slug)) problems.push(`--network-ceiling is given twice for ${slug || 'the installation'}`);
    read.set(slug, readWords(targets, problems));
  }
  const installation = read.get('') ?? (isDev ? EVERYTHING : PUBLIC);
  read.delete('');
  return { installation, organizations: read };
}

/** The union of all ceilings, for an engine that applies it to every sandbox, also to one without a ceiling from a server. */
export function highestCeiling({ installation, organizations }: NetworkCeilings): string {
  const words = new Set([installation, ...organizations.values()].flat());
  return words.has('all') ? 'all' : writeCeiling([...words]);
}

export function ceilingOf({ installation, organizations }: NetworkCeilings, slug: string): readonly string[] {
  return organizations.get(slug) ?? installation;
}

/** The engine's form of a ceiling: absent where everything is allowed. */
export function toEngineCeiling(words: readonly string[]): readonly string[] | null {
  return words.includes('all') ? null : words;
}

function readWords(text: string, problems: string[]): readonly string[] {
  try {
    return readCeiling(text);
  } catch (error) {
    if (!PlatformError.is(error)) throw error;
    problems.push(`--network-ceiling: ${error.message}`);
    return PUBLIC;
  }
}
