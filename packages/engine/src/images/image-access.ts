/**
 * Who may use an image of this host under a name without asking its registry: callers of these scopes, or everyone when null. A scope is an
 * opaque word that callers agree on.
 */
export type Scopes = readonly string[] | null;

/** The result of a pull: the registry serves the image anonymously, or to the credentials of a scope. */
export interface AccessProof {
  readonly isAnonymous: boolean;
  readonly scope: string | null;
}

/** For anonymous pulls and images made on this host: the image is public. */
export const PUBLIC: AccessProof = { isAnonymous: true, scope: null };

/** Callers that name no scope share this one. */
const NO_SCOPE = '';

export function isOpenTo(scopes: Scopes, scope: string | null): boolean {
  return scopes === null || scopes.includes(scope ?? NO_SCOPE);
}

/**
 * Whether all users who gain access by the proof can use an image with these scopes already. An anonymous proof makes an image public, so a
 * layer that only the caller holds does not count for it.
 */
export function coversAudience(scopes: Scopes, proof: AccessProof): boolean {
  return scopes === null || (!proof.isAnonymous && isOpenTo(scopes, proof.scope));
}

/** The scopes of a name after a proof. `before`: the scopes of the same name with the same image; undefined when there are none. */
export function scopesAfter(before: Scopes | undefined, proof: AccessProof): Scopes {
  if (proof.isAnonymous || before === null) return null;
  return [...new Set([...(before ?? []), proof.scope ?? NO_SCOPE])].toSorted();
}

/** The scopes that may use at least one of an image's names. */
export function unionOf(all: readonly Scopes[]): Scopes {
  const scopes: string[] = [];
  for (const each of all) {
    if (each === null) return null;
    scopes.push(...each);
  }
  return [...new Set(scopes)].toSorted();
}
