import { ERROR_STATUS, type ErrorCode } from '@svc/contract';
import {
  BYTES,
  ERROR_DESCRIPTIONS,
  EVENT_STREAM,
  pathsOf,
  REST_OPERATIONS,
  takesVersion,
  type RestOperation,
} from '@svc/contract/rest';
import { renderSchema } from './render-schema.ts';
import { escapeHtml, renderText } from './escape-html.ts';
import { REFERENCE_SCRIPT, REFERENCE_STYLE } from './reference-style.ts';

/** One page with every operation, grouped by resource: readable without a network, a script or an account. */
export function renderReference(): string {
  const groups = Map.groupBy(Object.entries<RestOperation>(REST_OPERATIONS), ([, { tag }]) => tag);
  const sections = [...groups].map(([tag, operations]) => renderGroup(tag, operations)).join('\n');
  const links = [...groups].map(
    ([tag, { length }]) => `<a href="#${idOf(tag)}">${tag}<span>${length}</span></a>`,
  );
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>svc API reference</title>
<style>${REFERENCE_STYLE}</style>
</head>
<body>
<nav>
<h1>svc API</h1>
<input id="filter" type="search" placeholder="Filter operations" aria-label="Filter operations">
${links.join('\n')}
<a href="/openapi.json">openapi.json</a>
</nav>
<main>
${INTRODUCTION}
${sections}
</main>
<script>${REFERENCE_SCRIPT}</script>
</body>
</html>
`;
}

const INTRODUCTION = `<header>
<p>Every request carries <code>Authorization: Bearer KEY</code>. An organization API key (<code>svc_…</code>) names its
organization; a personal access token (<code>svc_pat_…</code>) or a session uses the paths below
<code>/v1/orgs/{slug}</code>.</p>
<pre tabindex="0">curl -H "Authorization: Bearer $SVC_API_KEY" "$SVC_API_URL/v1/sandboxes?limit=20"

curl -H "Authorization: Bearer $SVC_API_KEY" -H "Content-Type: application/json" \\
  -d '{"name": "web", "image": {"type": "oci", "reference": "alpine"}}' \\
  "$SVC_API_URL/v1/sandboxes?start=true&amp;wait_for=running"</pre>
<p>Responses other than 2xx have the body <code>{"error": {"code", "message", "details"}}</code>; a 400 names the field. Lists
take <code>limit</code> (1–100) and <code>cursor</code>. Mutations take <code>Idempotency-Key</code>: the first outcome is
repeated for 24 hours. Sandboxes and volumes have an <code>ETag</code>, which <code>If-Match</code> of a change compares.
Every answer carries <code>X-Request-Id</code>.</p>
</header>`;

/** Names of groups have spaces; names of places in a page have none. */
function idOf(tag: string): string {
  return tag.replaceAll(' ', '-');
}

function renderGroup(tag: string, operations: readonly (readonly [string, RestOperation])[]): string {
  const items = operations.map(([name, operation]) => renderOperation(name, operation)).join('\n');
  return `<section id="${idOf(tag)}"><h2>${tag}</h2>\n${items}\n</section>`;
}

function renderOperation(name: string, operation: RestOperation): string {
  const { method, summary, params, query, headers, body, output, errors, status, role } = operation;
  const paths = pathsOf(operation);
  const [first] = paths;
  const addresses = paths.map(
    ({ path, audience }) => `<li><code>${method} /v1${escapeHtml(path)}</code> ${CREDENTIALS[audience]}</li>`,
  );
  const parts = [
    `<ul class="addresses">${addresses.join('')}</ul>`,
    paths.some(({ audience }) => audience === 'user') ? `<p class="role">Needs the role ${role}.</p>` : '',
    renderFields('Path', params),
    renderFields('Query', query),
    renderFields('Headers', headers),
    takesVersion(operation) ? '<p class="role">Takes <code>If-Match</code>.</p>' : '',
    body === null ? '' : `<h4>Body</h4>${body === BYTES ? '<p>Raw bytes.</p>' : renderSchema(body)}`,
    `<h4>Answer ${status}</h4>${renderOutput(output)}`,
    renderErrors(errors),
  ];
  return `<details id="${name}" class="${method.toLowerCase()}">
<summary><b>${method}</b> <code>/v1${escapeHtml(first?.path ?? '')}</code> <span>${renderText(summary)}</span></summary>
${parts.join('\n')}
</details>`;
}

const CREDENTIALS = { anyone: '', key: 'with an API key', user: 'with a token or session' } as const;

function renderFields(title: string, schema: RestOperation['query']): string {
  return Object.keys(schema.properties).length === 0 ? '' : `<h4>${title}</h4>${renderSchema(schema)}`;
}

function renderOutput(output: RestOperation['output']): string {
  if (output === BYTES) return '<p>Raw bytes.</p>';
  if (output === EVENT_STREAM) return '<p>Server-sent events.</p>';
  return renderSchema(output);
}

function renderErrors(errors: readonly ErrorCode[]): string {
  if (errors.length === 0) return '';
  const items = errors.map(
    (code) => `<li><code>${ERROR_STATUS[code]} ${code}</code> ${renderText(ERROR_DESCRIPTIONS[code])}</li>`,
  );
  return `<h4>Errors</h4><ul class="errors">${items.join('')}</ul>`;
}
