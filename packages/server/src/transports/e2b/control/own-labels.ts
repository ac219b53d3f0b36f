/** Labels in which the way of E2B's clients keeps what a sandbox has no field for. Their `metadata` are the other labels. */
export const LABEL = {
  prefix: 'e2b.',
  /** The template as the client named it. */
  template: 'e2b.template',
  /** `public`: its ports are open to all who know its id; `token`: they take the traffic token. */
  traffic: 'e2b.traffic',
} as const;

export function metadataOf(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(labels).filter(([key]) => !key.startsWith(LABEL.prefix)));
}
