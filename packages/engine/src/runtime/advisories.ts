/** A known vulnerability of a runtime, and svc's own mitigation. */
export interface Advisory {
  readonly id: string;
  readonly runtime: string;
  /** The first fixed version of each release line. Newer lines are fixed too. */
  readonly fixedIn: readonly string[];
  /** Debian's builds have the fix without a new version number. */
  readonly isMendedByDebian: boolean;
  readonly heldBy: string;
}

/**
 * Vulnerabilities of runtimes that let a sandbox reach the host. crun's authors found it not affected by those of November 2025
 * (https://github.com/containers/crun/issues/1906); gVisor's runsc serves the guest with a kernel of its own.
 */
const ADVISORIES: readonly Advisory[] = [
  {
    id: 'CVE-2024-21626',
    runtime: 'runc',
    fixedIn: ['1.1.12'],
    isMendedByDebian: true,
    heldBy: 'sandboxes start in /, and nothing of the host is open in svc-host when it starts a runtime',
  },
  {
    id: 'CVE-2024-45310',
    runtime: 'runc',
    fixedIn: ['1.1.14', '1.2.0'],
    isMendedByDebian: false,
    heldBy: "a sandbox's root is a user of the host that owns nothing there",
  },
  ...['CVE-2025-31133', 'CVE-2025-52565', 'CVE-2025-52881'].map((id) => ({
    id,
    runtime: 'runc',
    fixedIn: ['1.2.8', '1.3.3', '1.4.0'],
    isMendedByDebian: false,
    heldBy: 'no mount lands on /dev, /proc or /sys, also by a link, and there is no console',
  })),
];

/** The advisories that a version does not fix. Empty for an unknown version, which cannot be compared. */
export function missingAdvisories(runtime: string, version: string | null): readonly Advisory[] {
  const numbers = version === null ? null : parse(version);
  if (version === null || numbers === null) return [];
  return ADVISORIES.filter(
    (advisory) =>
      advisory.runtime === runtime &&
      !(advisory.isMendedByDebian && version.includes('+ds')) &&
      !isMended(
        numbers,
        advisory.fixedIn.flatMap((text) => parse(text) ?? []),
      ),
  );
}

interface Version {
  readonly line: number;
  readonly patch: number;
}

/** A pre-release counts as the release before it. */
function parse(version: string): Version | null {
  const match = /^v?(\d+)\.(\d+)\.(\d+)(-rc|~rc)?/.exec(version);
  if (match === null) return null;
  return {
    line: Number(match[1]) * 1000 + Number(match[2]),
    patch: Number(match[3]) - (match[4] === undefined ? 0 : 1),
  };
}

function isMended(version: Version, fixedIn: readonly Version[]): boolean {
  const same = fixedIn.find(({ line }) => line === version.line);
  if (same !== undefined) return version.patch >= same.patch;
  return fixedIn.every(({ line }) => version.line > line);
}
