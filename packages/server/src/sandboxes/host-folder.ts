/**
 * The folder below the host's roots that a sandbox can mount: its organization's. It is named by the id, not by the slug: another
 * organization could take over a slug, and with it the files of its first owner. The owner of the host can mount all of the roots.
 */
export function hostFolderOf(
  organizationId: string,
  { hasHostPaths }: { readonly hasHostPaths: boolean },
): { readonly hostFolder?: string } {
  return hasHostPaths ? {} : { hostFolder: organizationId };
}
