import type { Ground } from './ground.ts';

/** Makes a request on a real server and looks into the sandbox or at the answer. Throws when the claim does not hold. */
export type Proof = (ground: Ground) => Promise<void>;

/** A test that exists already and proves it, by its file below the root of the repository and a part of its title. */
export interface OtherTest {
  readonly file: string;
  readonly title: string;
}

/**
 * One row of the table of the specification.
 * - `id` is a leaf of a schema, or begins with one of `KINDS` and names what no schema holds.
 * - `covers` names further leaves that the same proof is about, such as the values of an enumeration.
 * - A row about the server alone is proved `once`; every other one on each class.
 */
export interface Claim {
  readonly id: string;
  readonly covers: readonly string[];
  /** A sentence for people. */
  readonly says: string;
  /** What the proof looks at, for people. */
  readonly how: string;
  readonly proof: Proof | OtherTest;
  readonly isOnce: boolean;
  /** What is in force when it is not given; empty where there is no such thing. */
  readonly default: string;
  /** `refused`: it cannot be had yet, and asking for it is an error that names it. */
  readonly state: 'works' | 'refused';
  /** The engine is killed before those of `outage` run, and is back before those of `return`. */
  readonly phase: Phase;
}

export const PHASES = ['usual', 'outage', 'return'] as const;
export type Phase = (typeof PHASES)[number];

/** What claims are about that is in no schema. */
export const KINDS = [
  'credential',
  'endpoint',
  'environment',
  'flow',
  'header',
  'limit',
  'message',
  'network',
  'rule',
  'transition',
  'version',
] as const;

type More = Partial<Pick<Claim, 'covers' | 'default' | 'phase' | 'state' | 'isOnce'>>;

/** A row that is proved on each class. */
export function claim(id: string, says: string, how: string, proof: Proof, more: More = {}): Claim {
  return {
    id,
    says,
    how,
    proof,
    covers: [],
    isOnce: false,
    default: '',
    state: 'works',
    phase: 'usual',
    ...more,
  };
}

/** A row about the server, the same for each isolation. */
export function claimOnce(id: string, says: string, how: string, proof: Proof, more: More = {}): Claim {
  return claim(id, says, how, proof, { ...more, isOnce: true });
}

/** A row that a test elsewhere proves. */
export function provedBy(id: string, says: string, file: string, title: string, more: More = {}): Claim {
  return { ...claimOnce(id, says, title, () => Promise.resolve(), more), proof: { file, title } };
}
