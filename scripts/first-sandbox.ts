// The last step of `make run`: runs Python in a first sandbox, through the server, and prints how to go on.
const NAME = 'first';
const CODE = `
import os, platform, socket
print("Hello from Python", platform.python_version(), "in sandbox", socket.gethostname())
print("uid", os.getuid(), "- CPUs", os.cpu_count(), "- kernel", platform.release())
6 * 7`;

interface Answer {
  readonly result?: unknown;
  readonly error?: { readonly message: string };
}

const status = JSON.parse(process.argv[2] ?? '{}') as { readonly url?: string };
const url = status.url ?? 'http://127.0.0.1:5555';
const key = process.env['SVC_API_KEY'] ?? '';
const sudo = process.env['SUDO'] ?? '';

const begun = performance.now();
await call('sandbox.start', { config: { image: 'python' } });
const started = performance.now();
const ran = (await call('sandbox.repl.run', { language: 'python', code: CODE })) as {
  readonly output: string;
  readonly error: string;
};
const ended = performance.now();
console.log(ran.output.trimEnd().replaceAll(/^/gm, '  '));
if (ran.error !== '') console.error(ran.error);
console.log(`  started in ${Math.round(started - begun)} ms, ran in ${Math.round(ended - started)} ms\n`);
console.log(howToGoOn());

async function call(method: string, params: object): Promise<unknown> {
  const headers: Record<string, string> = { 'content-type': 'application/json' };
  if (key !== '') headers['authorization'] = `Bearer ${key}`;
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: '1',
    method,
    params: { sandbox: NAME, namespace: 'default', ...params },
  });
  const response = await fetch(`${url}/api/v1/rpc`, { method: 'POST', headers, body });
  const answer = (await response.json()) as Answer;
  if (answer.error === undefined) return answer.result;
  console.error(`  ${method} failed: ${answer.error.message}\n  see: ${sudo}./svc server logs`);
  return process.exit(1);
}

function howToGoOn(): string {
  const authorization = key === '' ? '' : ` -H 'Authorization: Bearer <key>'`;
  const request = { jsonrpc: '2.0', id: '1', method: 'sandbox.repl.run' };
  const params = { sandbox: NAME, namespace: 'default', language: 'python', code: 'sum(range(10))' };
  const headers = key === '' ? {} : { headers: { Authorization: 'Bearer <key>' } };
  const mcp = { mcpServers: { svc: { type: 'http', url: `${url}/mcp`, ...headers } } };
  const needsKey = key === '' ? '' : '; needs SVC_API_KEY';
  const next = [
    ['./svc run -it python bash', `a shell in a sandbox of its own${needsKey}`],
    [`./svc exec -it ${NAME} sh`, `a shell in this one${needsKey}`],
    [`${sudo}./svc server status`, 'what runs, and what it uses'],
    [`${sudo}./svc server stop`, 'stop the server (sandboxes run on)'],
  ] as const;
  return [
    `The server listens on ${url}${key === '' ? ' and asks for no key (--dev)' : '; a key: svc server keygen --quiet'}.`,
    `The dashboard, in a browser: ${url}/`,
    '',
    'From anything that speaks HTTP:',
    `  curl -s ${url}/api/v1/rpc${authorization} -H 'Content-Type: application/json' \\`,
    `    -d '${JSON.stringify({ ...request, params })}'`,
    '',
    'From an AI tool, over MCP:',
    `  ${JSON.stringify(mcp)}`,
    '',
    'Next:',
    ...next.map(([command, what]) => `  ${command.padEnd(30)} ${what}`),
  ].join('\n');
}
