import { DEFAULT_NAMESPACE } from '@svc/contract';

const PREFIX = 'svc://sandboxes/';

/** RFC 6570; reserved characters of a path are kept. */
export const FILE_TEMPLATE = `${PREFIX}{name}/files/{+path}{?namespace}`;

export interface FileAddress {
  readonly namespace: string;
  readonly sandbox: string;
  /** Absolute. */
  readonly path: string;
}

export function fileUri({ namespace, sandbox, path }: FileAddress): string {
  const encoded = path.slice(1).split('/').map(encodeURIComponent).join('/');
  const query = namespace === DEFAULT_NAMESPACE ? '' : `?namespace=${encodeURIComponent(namespace)}`;
  return `${PREFIX}${encodeURIComponent(sandbox)}/files/${encoded}${query}`;
}

/** @returns undefined when it is not the address of a file */
export function readFileUri(uri: string): FileAddress | undefined {
  const match = /^svc:\/\/sandboxes\/([^/?#]+)\/files\/([^?#]*)(?:\?namespace=([^&#]*))?$/.exec(uri);
  if (match === null) return undefined;
  const [, name = '', path = '', namespace] = match;
  try {
    return {
      sandbox: decodeURIComponent(name),
      path: `/${decodeURIComponent(path)}`,
      namespace: namespace === undefined ? DEFAULT_NAMESPACE : decodeURIComponent(namespace),
    };
  } catch {
    // An invalid percent escape.
    return undefined;
  }
}
