import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isErrno } from '@svc/contract/errno';
import { UsageError } from '../usage-error.ts';

/** The address of a server and the place of its key. The key itself is never stored here. */
export interface Context {
  readonly url: string;
  /** `env:VARIABLE` or `file:/path`; absent when the server requires no key. */
  readonly apiKeyRef?: string;
  /** Slug to act in, for tokens of users. */
  readonly organization?: string;
}

export interface ContextFile {
  /** Name of the context that is used unless another one is named; null: none. */
  readonly active: string | null;
  readonly contexts: Readonly<Record<string, Context>>;
}

const NAME = /^[a-z0-9][a-z0-9._-]{0,62}$/i;

/** Empty when there is none yet. @throws UsageError */
export async function readContexts(folder: string): Promise<ContextFile> {
  const path = contextPath(folder);
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if (isErrno(error, 'ENOENT')) return '{}';
    throw error;
  });
  const { active = null, contexts = {} } = parse(text, path);
  return { active, contexts };
}

/** Replaces the file atomically, so that a concurrent command sees the old one or the new one. */
export async function writeContexts(folder: string, file: ContextFile): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = contextPath(folder);
  const draft = `${path}.${process.pid}`;
  await writeFile(draft, `${JSON.stringify(file, null, 2)}\n`, { mode: 0o600 });
  await rename(draft, path);
}

/** @throws UsageError that lists the existing contexts */
export function requireContext({ contexts }: ContextFile, name: string): Context {
  const context = Object.hasOwn(contexts, name) ? contexts[name] : undefined;
  if (context !== undefined) return context;
  throw new UsageError(`there is no context '${name}'\n  try: svc context ls`);
}

/** @throws UsageError */
export function requireContextName(name: string): string {
  if (NAME.test(name)) return name;
  throw new UsageError(
    'a context is named by letters, digits, dots, hyphens and underscores\n  try: svc context add lab --url URL',
  );
}

/** SAFETY: the name has passed `requireContextName`, so the path stays inside the folder. */
export function keyPath(folder: string, name: string): string {
  return join(folder, 'keys', requireContextName(name));
}

function contextPath(folder: string): string {
  return join(folder, 'config.json');
}

function parse(text: string, path: string): Partial<ContextFile> {
  try {
    const value: unknown = JSON.parse(text);
    // svc writes this file; a file that was edited badly is reported where it is used.
    if (typeof value === 'object' && value !== null) return value;
  } catch {
    // Reported below.
  }
  throw new UsageError(`${path} is no JSON\n  try: mend it, or remove it and use svc context add`);
}
