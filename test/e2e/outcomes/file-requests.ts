import type { RestOperationName } from '@svc/contract/rest';
import type { Parts } from './world.ts';

/** Those on files; not those on links to them. */
export type FileOperation = Exclude<Extract<RestOperationName, `files.${string}`>, `files.${string}Link`>;

/** What each operation is asked, when it is about this path. */
export const FILE_REQUESTS: Readonly<Record<FileOperation, (path: string) => Parts>> = {
  'files.list': (path) => ({ query: { path } }),
  'files.stat': (path) => ({ query: { path } }),
  'files.read': (path) => ({ query: { path } }),
  'files.write': (path) => ({ query: { path }, body: 'written' }),
  'files.makeFolder': (path) => ({ body: { path } }),
  'files.move': (path) => ({ body: { from: path, to: `${path}-moved` } }),
  'files.remove': (path) => ({ query: { path } }),
  'files.change': (path) => ({ body: { path, mode: '0600' } }),
};
// The keys of the record.
export const ALL_FILE_OPERATIONS = Object.keys(FILE_REQUESTS) as FileOperation[];
