import { readFileSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { errnoOf } from '@svc/contract/errno';
import { PlatformError } from '@svc/contract';
import { TlsCredentials, type EngineAddress, type TlsFiles } from '@svc/engine/client';
import type { Logger } from 'pino';
import { EXIT } from '../host/exit-codes.ts';
import { StartError } from '../host/start-error.ts';

/** A node of the operator's list, and where its engine listens. */
export interface ListedNode {
  readonly name: string;
  readonly address: EngineAddress;
}

const NAME = /^[a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?$/;
const FILES = ['ca', 'cert', 'key'] as const satisfies readonly (keyof TlsFiles)[];
const FIELDS: readonly string[] = ['name', 'url', ...FILES];

/**
 * The nodes in a JSON file, `{"nodes": [{"name", "url", "ca", "cert", "key"}]}`. Whether they answer is not asked.
 * @throws StartError that names every fault
 */
export function readNodes(path: string, logger: Logger): readonly ListedNode[] {
  const problems: string[] = [];
  const entries = entriesOf(parse(path));
  if (entries === undefined) problems.push('must be {"nodes": […]} with one entry or more');
  const seen = new Set<string>();
  const nodes = (entries ?? []).flatMap((entry, index) => {
    const refuse = (field: string, reason: string) =>
      void problems.push(`nodes[${index}].${field} ${reason}`);
    const name = readName(entry, seen, refuse);
    const address = readAddress(entry, name, refuse, logger);
    return address === undefined ? [] : [{ name, address }];
  });
  if (problems.length > 0) throw new StartError(EXIT.usage, `--nodes ${path}: ${problems.join('; ')}`);
  return nodes;
}

type Entry = Readonly<Record<string, unknown>>;
type Refuse = (field: string, reason: string) => void;

function parse(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    const errno = errnoOf(error);
    const problem =
      errno === undefined
        ? `is not JSON: ${error instanceof Error ? error.message : ''}`
        : `cannot be read by the server's user ${process.getuid?.()}: ${errno}`;
    throw new StartError(EXIT.usage, `--nodes ${path} ${problem}`);
  }
}

function entriesOf(content: unknown): readonly Entry[] | undefined {
  if (!isObject(content) || Object.keys(content).some((key) => key !== 'nodes')) return undefined;
  const { nodes } = content;
  return Array.isArray(nodes) && nodes.length > 0 && nodes.every(isObject) ? nodes : undefined;
}

function isObject(value: unknown): value is Entry {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function readName({ name, ...rest }: Entry, seen: Set<string>, refuse: Refuse): string {
  for (const field of Object.keys(rest).filter((key) => !FIELDS.includes(key)))
    refuse(field, `is not a field; the fields are ${FIELDS.join(', ')}`);
  if (typeof name !== 'string' || !NAME.test(name)) {
    refuse('name', 'must be up to 63 small letters, digits, dots and hyphens');
    return '';
  }
  if (seen.has(name)) refuse('name', `${name} is given twice; sandboxes are found by it`);
  seen.add(name);
  return name;
}

function readAddress(entry: Entry, name: string, refuse: Refuse, logger: Logger): EngineAddress | undefined {
  const { url } = entry;
  if (typeof url === 'string' && url.startsWith('unix:')) return readSocket(entry, url, refuse);
  const parsed = typeof url === 'string' ? URL.parse(url) : null;
  const port = typeof url === 'string' ? /:(?<port>\d{1,5})$/.exec(url)?.groups?.['port'] : undefined;
  const isPlain = parsed?.protocol === 'https:' && port !== undefined && parsed.href === `${parsed.origin}/`;
  if (!isPlain) refuse('url', 'must be https://HOST:PORT or unix:/PATH');
  const files = readFiles(entry, refuse);
  if (!isPlain || files === undefined) return undefined;
  try {
    const credentials = new TlsCredentials(files, (error) =>
      logger.error({ node: name, err: error }, 'a replaced certificate cannot be used; the one before is'),
    );
    return { host: parsed.hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port), credentials };
  } catch (error) {
    if (!PlatformError.is(error)) throw error;
    refuse('ca, cert, key', `cannot be used: ${error.message}`);
    return undefined;
  }
}

function readSocket(entry: Entry, url: string, refuse: Refuse): EngineAddress | undefined {
  const socketPath = url.slice('unix:'.length);
  const isPath = isAbsolute(socketPath);
  if (!isPath) refuse('url', 'must name an absolute path after unix:');
  for (const field of FILES.filter((name) => entry[name] !== undefined))
    refuse(field, 'is for https:// alone; a unix socket has no TLS');
  return isPath ? { socketPath } : undefined;
}

function readFiles(entry: Entry, refuse: Refuse): TlsFiles | undefined {
  const paths = FILES.map((name) => {
    const path = entry[name];
    if (typeof path === 'string' && isAbsolute(path)) return path;
    refuse(name, 'must be the absolute path of a file');
    return undefined;
  });
  const [ca, cert, key] = paths;
  return ca === undefined || cert === undefined || key === undefined ? undefined : { ca, cert, key };
}
