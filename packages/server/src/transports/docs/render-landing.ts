import { escapeHtml } from './escape-html.ts';
import { LANDING_SCRIPT, LANDING_STYLE } from './landing-style.ts';

export interface LandingFacts {
  /** As requested by the caller. */
  readonly url: string;
  readonly version: string;
  readonly needsKey: boolean;
  /** Whether `/` serves the dashboard. */
  readonly hasDashboard: boolean;
  /** Why sandboxes cannot run; null: they can. */
  readonly trouble: string | null;
}

/** Renders an introduction, the addresses of everything, and commands that work with this server. */
export function renderLanding(facts: LandingFacts): string {
  const { url, version, needsKey, hasDashboard, trouble } = facts;
  const state =
    trouble === null
      ? '<p class="state good">Ready to run sandboxes.</p>'
      : `<p class="state bad">Cannot run sandboxes: ${escapeHtml(trouble)}</p>`;
  const links = [...(hasDashboard ? [DASHBOARD] : []), ...LINKS].map(
    ([path, title, what]) =>
      `<li><a href="${path}">${title}</a> <code>${path}</code><span>${what}</span></li>`,
  );
  const places = PLACES.map(
    ([path, what]) => `<li><code>${escapeHtml(url)}${path}</code><span>${what}</span></li>`,
  );
  const snippets = snippetsFor(facts).map(renderSnippet);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>svc</title>
<link rel="icon" href="data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Crect width='32' height='32' rx='8' fill='%23221d16'/%3E%3Cpath d='M7 12.5 16 8l9 4.5v9L16 26l-9-4.5zM7 12.5 16 17l9-4.5M16 17v9' fill='none' stroke='%23e8b36a' stroke-width='2' stroke-linejoin='round'/%3E%3C/svg%3E">
<style>${LANDING_STYLE}</style>
<script>${LANDING_SCRIPT}</script>
</head>
<body>
<main>
<header>
<h1><svg viewBox="0 0 24 24" width="28" height="28" aria-hidden="true"><path d="M3 8 12 3.5 21 8v8.5L12 21l-9-4.5zM3 8l9 4.5L21 8M12 12.5V21"/></svg>svc <small>${escapeHtml(version)}</small></h1>
<p>Runs untrusted code in sandboxes on this machine: over REST, JSON-RPC and MCP, from TypeScript and from the command line.</p>
${state}
</header>
<section class="panel">
<h2>Connect</h2>
${needsKey ? ABOUT_KEYS : '<p>This server asks for no key (<code>--dev</code>).</p>'}
${snippets.join('\n')}
</section>
<section class="panel">
<h2>Addresses</h2>
<ul class="links">
${places.join('\n')}
</ul>
</section>
<section class="panel">
<h2>Pages</h2>
<ul class="links">
${links.join('\n')}
</ul>
</section>
</main>
</body>
</html>
`;
}

/** A button that copies the lines; hidden until its script has run. */
function renderSnippet({ id, title, text }: Snippet): string {
  return `<section class="code" aria-labelledby="${id}-title"><header><h3 id="${id}-title">${title}</h3>
<button type="button" hidden data-copies="${id}" aria-label="Copy: ${title}"><span role="status">Copy</span></button></header>
<pre id="${id}" tabindex="0" aria-labelledby="${id}-title">${escapeHtml(text)}</pre></section>`;
}

const DASHBOARD = ['/', 'Dashboard', 'sandboxes, files and members in a browser'] as const;
const LINKS = [
  ['/docs', 'Reference', 'every operation of the REST API'],
  ['/openapi.json', 'OpenAPI', 'the same for programs'],
  ['/api/v1/health', 'Health', 'whether sandboxes can run'],
] as const;

const PLACES = [
  ['/v1', 'REST'],
  ['/api/v1/rpc', 'JSON-RPC 2.0'],
  ['/mcp', 'MCP, Streamable HTTP'],
] as const;

const ABOUT_KEYS = `<p>This server asks for a key. Its operator creates one on its machine, with <code>--path</code> if the server was
started with it. The key is shown once:</p>
${renderSnippet({ id: 'key', title: 'Create a key', text: 'sudo svc apikey create' })}
<p>The lines below read it from a variable:</p>
${renderSnippet({ id: 'variable', title: 'Set the variable', text: 'export SVC_API_KEY=svc_…' })}`;

interface Snippet {
  readonly id: string;
  readonly title: string;
  readonly text: string;
}

function snippetsFor({ url, needsKey }: LandingFacts): readonly Snippet[] {
  const key = needsKey ? ' -H "Authorization: Bearer $SVC_API_KEY"' : '';
  const headers = needsKey ? { headers: { Authorization: 'Bearer ${SVC_API_KEY}' } } : {};
  const mcp = { mcpServers: { svc: { type: 'http', url: `${url}/mcp`, ...headers } } };
  const start = call('sandbox.start', { sandbox: 'demo', config: { image: 'python' } });
  const run = call('sandbox.repl.run', { sandbox: 'demo', language: 'python', code: 'sum(range(10))' });
  const rpc = (body: string) =>
    `curl -s ${url}/api/v1/rpc${key} \\\n  -H 'Content-Type: application/json' \\\n  -d '${body}'`;
  return [
    {
      id: 'cli',
      title: 'Command line',
      text: `export SVC_API_URL=${url}\nsvc run python python3 -c 'print(6 * 7)'`,
    },
    { id: 'sdk', title: 'TypeScript, with SVC_API_URL as above', text: SDK },
    { id: 'rest', title: 'REST', text: `curl -s "${url}/v1/sandboxes?limit=20"${key}` },
    { id: 'rpc', title: 'JSON-RPC', text: `${rpc(start)}\n${rpc(run)}` },
    { id: 'mcp', title: 'MCP over HTTP, for AI tools', text: JSON.stringify(mcp, null, 2) },
    {
      id: 'mcp-stdio',
      title: 'MCP over standard input and output, for AI tools',
      text: `svc mcp --url ${url}`,
    },
  ];
}

const SDK = `import { Sandbox } from '@svc/sdk';

await using sandbox = await Sandbox.create({ image: 'python' });
console.log((await sandbox.exec('python3', ['-c', 'print(6 * 7)'])).text());`;

function call(method: string, params: object): string {
  return JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
}
