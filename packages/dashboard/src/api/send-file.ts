const watchers = new WeakMap<Blob, (sentBytes: number) => void>();

/** Called with the number of bytes sent, for every upload of the client. */
export function watchSending(file: Blob, onSent: (sentBytes: number) => void): void {
  watchers.set(file, onSent);
}

/** Like `fetch`, with upload progress. The browser streams the file from disk. */
export async function sendFile(url: string, init: RequestInit & { readonly body: Blob }): Promise<Response> {
  const { method = 'POST', headers, body, signal } = init;
  const request = new XMLHttpRequest();
  request.open(method, url);
  for (const [name, value] of new Headers(headers)) request.setRequestHeader(name, value);
  const { promise, resolve, reject } = Promise.withResolvers<Response>();
  request.upload.addEventListener('progress', ({ loaded }) => watchers.get(body)?.(loaded));
  request.addEventListener('load', () => resolve(answerOf(request)));
  request.addEventListener('error', () => reject(new TypeError('the connection broke off')));
  request.addEventListener('abort', () => reject(signal?.reason ?? new TypeError('it was cancelled')));
  const abort = (): void => request.abort();
  signal?.addEventListener('abort', abort);
  request.send(body);
  // An abort before `send` raises no event.
  if (signal?.aborted === true) reject(signal.reason);
  try {
    return await promise;
  } finally {
    signal?.removeEventListener('abort', abort);
  }
}

function answerOf(request: XMLHttpRequest): Response {
  const lines = request.getAllResponseHeaders().trim().split('\r\n').filter(Boolean);
  const headers = lines.map((line): [string, string] => {
    const end = line.indexOf(':');
    return [line.slice(0, end), line.slice(end + 1).trim()];
  });
  const { status, responseText } = request;
  return new Response(responseText === '' ? null : responseText, { status, headers });
}
