import { ISOLATIONS } from '@svc/contract/orchestrator';
import type { Finding, HostReport } from './finding.ts';
import type { HostFacts } from './host-facts.ts';
import { judgeKernel } from './judge-kernel.ts';
import { judgePrograms } from './judge-programs.ts';
import { judgeRuntimes } from './judge-runtimes.ts';
import { judgeSpace } from './judge-space.ts';

/** Judges the facts of a host for running sandboxes. */
export function judgeHost(facts: HostFacts, now: Date): HostReport {
  const findings: readonly Finding[] = [
    ...judgeRuntimes(facts.runtimes, now),
    ...judgeKernel(facts),
    ...judgePrograms(facts.programs),
    ...judgeSpace(facts),
  ];
  const classes = ISOLATIONS.filter((name) =>
    facts.runtimes.some(({ isolation, usable }) => usable && isolation === name),
  );
  const isComplete = findings.every(({ group, status }) => group === 'runtimes' || status !== 'missing');
  return { findings, classes, canRunSandboxes: classes.length > 0 && isComplete };
}
