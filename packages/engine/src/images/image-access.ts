/**
 * Who may use an image of this host under a name without asking its registry: callers of these scopes, or everybody when null.
 * A scope is a word that callers agree on; nothing more is known of it here.
 */
export type Scopes = readonly string[] | null;

/** What a pull has shown: that a registry hands the image out to anybody, or to the credentials of a scope. */
export interface AccessProof {
  readonly isAnonymous: boolean;
  readonly scope: string | null;
}

/** Anonymous pulls and what is made on this host prove that nothing is to be kept from anyone. */
export const PUBLIC: AccessProof = { isAnonymous: true, scope: null };

/** Callers that name no scope share this one. */
const NO_SCOPE = '';

export function isOpenTo(scopes: Scopes, scope: string | null): boolean {
  return scopes === null || scopes.includes(scope ?? NO_SCOPE);
}

/**
 * Whether an image with these scopes shows that all who will see what was proved hold its layers already. An anonymous proof
 * opens an image to everybody, so a layer that the caller alone holds does not count for it.
 */
export function coversAudience(scopes: Scopes, proof: AccessProof): boolean {
  return scopes === null || (!proof.isAnonymous && isOpenTo(scopes, proof.scope));
}

/** The scopes of a name after a proof. `before`: those of the same name with the same image; undefined when there is none. */
export function scopesAfter(before: Scopes | undefined, proof: AccessProof): Scopes {
  if (proof.isAnonymous || before === null) return null;
  return [...new Set([...(before ?? []), proof.scope ?? NO_SCOPE])].toSorted();
}

/** Of an image with several names: whoever may use one of them. */
export function unionOf(all: readonly Scopes[]): Scopes {
  const scopes: string[] = [];
  for (const each of all) {
    if (each === null) return null;
    scopes.push(...each);
  }
  return [...new Set(scopes)].toSorted();
}
