import { spawn } from 'node:child_process';
import { readFile, stat } from 'node:fs/promises';
import { join, normalize } from 'node:path';
import { buffer } from 'node:stream/consumers';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';

/** A folder of files for download, and repositories below `/git/`; paths below `/private/` require the password. */
export interface Mirror {
  readonly folder: string;
  readonly password: string;
}

export async function serveMirror(
  { folder, password }: Mirror,
  incoming: Http2ServerRequest,
  body: Buffer,
  response: Http2ServerResponse,
): Promise<void> {
  const { pathname, search } = new URL(incoming.url, 'http://mirror.invalid');
  const isPrivate = pathname.startsWith('/private/');
  const path = normalize(isPrivate ? pathname.slice('/private'.length) : pathname);
  if (isPrivate && passwordOf(incoming) !== password) {
    response.writeHead(401, { 'www-authenticate': 'Basic realm="mirror"' }).end('who are you?\n');
    return;
  }
  if (path.startsWith('/git/')) {
    await serveGit(folder, { path, query: search.slice(1) }, incoming, body, response);
    return;
  }
  // pip's index is a folder.
  const file = join(folder, path.endsWith('/') ? `${path}index.html` : path);
  const isFile = await stat(file).then(
    (found) => found.isFile(),
    () => false,
  );
  const type = file.endsWith('.html') ? 'text/html' : 'application/octet-stream';
  if (isFile) response.writeHead(200, { 'content-type': type }).end(await readFile(file));
  else response.writeHead(404).end('nothing here\n');
}

function passwordOf({ headers }: Http2ServerRequest): string | undefined {
  const [, credentials = ''] = /^Basic (.+)$/.exec(headers.authorization ?? '') ?? [];
  return Buffer.from(credentials, 'base64').toString().split(':')[1];
}

/** Runs git's own CGI program, as web servers do: variables and the body in, head and body out. */
async function serveGit(
  folder: string,
  { path, query }: { readonly path: string; readonly query: string },
  { method, headers }: Http2ServerRequest,
  body: Buffer,
  response: Http2ServerResponse,
): Promise<void> {
  const child = spawn('git', ['http-backend'], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: {
      PATH: '/usr/bin:/bin',
      GIT_PROJECT_ROOT: folder,
      GIT_HTTP_EXPORT_ALL: '1',
      PATH_INFO: path,
      QUERY_STRING: query,
      REQUEST_METHOD: method,
      CONTENT_TYPE: headers['content-type'] ?? '',
      CONTENT_LENGTH: String(body.length),
      HTTP_CONTENT_ENCODING: headers['content-encoding'] ?? '',
      HTTP_GIT_PROTOCOL: String(headers['git-protocol'] ?? ''),
    },
  });
  // For a page it reads nothing, and may have ended already.
  child.stdin.on('error', () => undefined);
  child.stdin.end(body);
  const output = await buffer(child.stdout);
  const end = output.indexOf('\r\n\r\n');
  const lines = output
    .subarray(0, end)
    .toString('latin1')
    .split('\r\n')
    .map((line) => line.split(': '));
  const head = Object.fromEntries(lines.map(([name = '', value = '']) => [name.toLowerCase(), value]));
  const { status = '200', ...rest } = head;
  response.writeHead(Number.parseInt(status, 10), rest).end(output.subarray(end + 4));
}
