import { PlatformError } from '@svc/contract';
import type { NewOrchestratorSandbox, OrchestratorDescription } from '@svc/contract/orchestrator';
import type { FleetMembers } from './fleet-members.ts';
import type { NodeFinder } from './node-finder.ts';

/** A node without the image counts as if it had this many sandboxes more: a pull takes longer than a busy node. */
const IMAGE_WEIGHT = 8;
const FULL_MS = 5000;

type Request = Pick<
  NewOrchestratorSandbox,
  'spec' | 'isolation' | 'volumes' | 'hostVolume' | 'snapshot' | 'imageScope' | 'node'
>;

export interface Placement {
  readonly members: FleetMembers;
  readonly full: FullNodes;
  readonly volumes: NodeFinder;
  readonly snapshots: NodeFinder;
}

/**
 * The node for a sandbox: the one that was asked for, else the one that has its volumes and its snapshot, else the healthy one with its
 * class that has the fewest sandboxes, where an image that is there already counts for some. Nodes that had no room lately come last.
 * @throws PlatformError `invalid_sandbox_config` when its parts are on different nodes; `isolation_unavailable`
 */
export async function chooseNode(
  { members, full, volumes, snapshots }: Placement,
  request: Request,
  signal: AbortSignal,
): Promise<string> {
  const pins = await findPins({ volumes, snapshots }, request, signal);
  const [pinned] = pins.values();
  if (new Set(pins.values()).size > 1) throw onDifferentNodes(pins);
  if (pinned !== undefined) return pinned;
  const { answers } = await members.ask(async ({ nodes, imageStore }, deadline) => {
    const description = await nodes.describe(deadline);
    const held = await imageStore.listHeldImages(request.imageScope ?? '', deadline);
    const { reference } = request.spec.image;
    return { description, hasImage: held.images.some(({ references }) => references.includes(reference)) };
  }, signal);
  const able = answers.filter(({ answer }) => canRun(answer.description, request.isolation));
  const weigh = ({ description, hasImage }: (typeof able)[number]['answer']) =>
    description.sandboxes + (hasImage ? 0 : IMAGE_WEIGHT);
  const [best] = able.toSorted(
    (a, b) => Number(full.has(a.node)) - Number(full.has(b.node)) || weigh(a.answer) - weigh(b.answer),
  );
  if (best !== undefined) return best.node;
  const wanted = request.isolation ?? 'any class';
  throw new PlatformError(
    'isolation_unavailable',
    `no node that answers can run ${wanted}; see \`svc node ls\``,
    {
      details: { isolation: request.isolation ?? null },
    },
  );
}

/** Nodes that had no room for a sandbox a moment ago. */
export class FullNodes {
  readonly #until = new Map<string, number>();

  note(node: string): void {
    this.#until.set(node, performance.now() + FULL_MS);
  }

  has(node: string): boolean {
    return (this.#until.get(node) ?? -Infinity) > performance.now();
  }
}

/** The nodes that this sandbox is bound to, by what binds it. */
async function findPins(
  { volumes, snapshots }: Pick<Placement, 'volumes' | 'snapshots'>,
  { spec, volumes: ids = {}, hostVolume, snapshot, node }: Request,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const pins = new Map<string, string>();
  if (node !== undefined) pins.set('the request', node);
  const note = async (what: string, finder: NodeFinder, id: string) => {
    const found = await finder.find(id, signal);
    if (found !== undefined) pins.set(what, found);
  };
  for (const mount of spec.mounts ?? []) {
    if (mount.type === 'named') await note(`volume ${mount.name}`, volumes, ids[mount.name] ?? mount.name);
  }
  if (hostVolume !== undefined) await note('the host volume', volumes, hostVolume);
  if (snapshot !== undefined) await note('the snapshot', snapshots, snapshot);
  return pins;
}

function onDifferentNodes(pins: ReadonlyMap<string, string>): PlatformError {
  const places = [...pins].map(([what, node]) => `${what} is on ${node}`).join(', ');
  const message = `a sandbox and what it uses are on one node, but ${places}; use what is on the same node`;
  return new PlatformError('invalid_sandbox_config', message, {
    details: { nodes: Object.fromEntries(pins) },
  });
}

function canRun({ isolation, classes }: OrchestratorDescription, wanted: string | undefined): boolean {
  if (wanted === undefined) return isolation !== null;
  return classes.some((each) => each.isolation === wanted && each.isUsable);
}
