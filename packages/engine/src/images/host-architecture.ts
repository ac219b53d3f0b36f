import { arch } from 'node:process';

/** This host's architecture in the words of the OCI image specification. */
export function hostArchitecture(): string {
  const names: Partial<Record<typeof arch, string>> = {
    x64: 'amd64',
    ia32: '386',
    arm64: 'arm64',
    ppc64: 'ppc64le',
  };
  return names[arch] ?? arch;
}
