/** The parts of a path where its pattern has `:name`; `*` is the rest, with its slashes. */
export type PathParams = Readonly<Record<string, string>>;

/** Undefined: the path does not match. */
export function matchPath(pattern: string, path: string): PathParams | undefined {
  const wanted = pattern.split('/').filter(Boolean);
  const given = path.split('/').filter(Boolean);
  const params: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    if (part === '*') return { ...params, '*': given.slice(index).map(decode).join('/') };
    const value = given[index];
    if (value === undefined) return undefined;
    if (part.startsWith(':')) params[part.slice(1)] = decode(value);
    else if (part !== value) return undefined;
  }
  return wanted.length === given.length ? params : undefined;
}

/** The path of a pattern with these in it. */
export function fillPath(pattern: string, params: PathParams): string {
  return pattern.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name] ?? ''));
}

/** Decodes a part of a path; an invalid one, perhaps typed by hand, stays as it is. */
function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
