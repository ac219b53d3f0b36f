import { SECTIONS } from '../test/specification/claims/sections.ts';
import type { Claim } from '../test/specification/claim.ts';
import type { Leaf } from '../test/specification/leaf-collector.ts';
import { readLeaves } from '../test/specification/leaves.ts';
import { PENDING_CLAIMS } from '../test/specification/pending-claims.ts';

const INTRODUCTION = [
  'Every field, value, message, code, tool and option of the specification, with what proves it. Each row is a test of ' +
    '`test/specification`: a request on a real server, and a look into the sandbox or at the answer. A field of the contract ' +
    'without a row fails `make test`.',
  '',
  '- *Where*: in requests, in answers, or in both.',
  '- *Proved*: on `container` and on `gvisor` (*each*), or with one of them where only the server is concerned (*once*). ' +
    'A link leads to the test elsewhere that proves it.',
  '- **Refused**: cannot be had yet. A request that asks for it is an error that names the field and says why; nothing is ' +
    'taken and left without effect.',
  '',
  'What every operation of the control plane can end in is proved by `test/e2e/outcomes`; [operations](operations.md), ' +
    '[errors](errors.md) and [the command line](cli.md) have pages of their own.',
];

/** docs/reference/specification.md: the claims of `test/specification` as a table. */
export async function renderSpecificationReference(): Promise<string> {
  const leaves = new Map((await readLeaves()).map((leaf) => [leaf.id, leaf]));
  const sections = SECTIONS.flatMap(({ title, about, claims }) => [
    `## ${title}`,
    '',
    ...(about === '' ? [] : [about, '']),
    ...renderTable(claims, leaves),
    '',
  ]);
  return [
    '# Specification',
    '',
    'Generated from `test/specification` by `make generate`.',
    '',
    ...INTRODUCTION,
    '',
    ...sections,
    ...renderPending(leaves),
  ].join('\n');
}

function renderPending(leaves: ReadonlyMap<string, Leaf>): readonly string[] {
  if (PENDING_CLAIMS.length === 0) return [];
  const about = 'Not proved yet: these rows are not part of the run.';
  return ['## Pending', '', about, '', ...renderTable(PENDING_CLAIMS, leaves), ''];
}

function renderTable(claims: readonly Claim[], leaves: ReadonlyMap<string, Leaf>): readonly string[] {
  return [
    '| What | Type | Where | Meaning | Default | How it is seen | Proved |',
    '|---|---|---|---|---|---|---|',
    ...claims.map((claim) => renderRow(claim, leaves.get(claim.id), leaves)),
  ];
}

function renderRow(claim: Claim, leaf: Leaf | undefined, leaves: ReadonlyMap<string, Leaf>): string {
  const { id, says, how, state } = claim;
  const meaning = state === 'refused' ? `**Refused.** ${says}` : says;
  const fallback = claim.default === '' ? (leaf?.default ?? '') : claim.default;
  const cells = [
    `${code(id)}${renderValues(claim, leaves)}`,
    leaf?.type === 'value' ? '' : (leaf?.type ?? ''),
    leaf?.sides.join(', ') ?? '',
    meaning,
    fallback,
    how,
    renderProof(claim),
  ];
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}

/** The values of the row's own field, by their last part; other leaves by their name. */
function renderValues({ id, covers }: Claim, leaves: ReadonlyMap<string, Leaf>): string {
  const known = covers.filter((name) => leaves.has(name));
  const values = known.filter((name) => name.startsWith(`${id}=`)).map((name) => name.slice(id.length + 1));
  const others = known.filter((name) => !name.startsWith(`${id}=`));
  const parts = [
    ...(values.length === 0 ? [] : [`values: ${values.map(code).join(', ')}`]),
    ...(others.length === 0 ? [] : [`also: ${others.map(code).join(', ')}`]),
  ];
  return parts.map((part) => `<br>${part}`).join('');
}

function renderProof({ proof, isOnce }: Claim): string {
  if (typeof proof === 'function') return isOnce ? 'once' : 'each';
  return `[test](../../${proof.file})`;
}

function code(text: string): string {
  return `\`${text}\``;
}
