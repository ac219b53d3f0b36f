/**
 * The folder below the host's roots that a sandbox reaches: its organization's. By the id, not by the slug: a slug can be changed
 * and be taken by others, and with it what was put aside for its first owner. The owner of the host reaches all of the roots.
 */
export function hostFolderOf(
  organizationId: string,
  { hasHostPaths }: { readonly hasHostPaths: boolean },
): { readonly hostFolder?: string } {
  return hasHostPaths ? {} : { hostFolder: organizationId };
}
