import type { SandboxStatus } from '@svc/contract/rest';

/** Colour, shape and word of each status, so that colour alone carries no meaning. */
const LOOKS: Readonly<Record<SandboxStatus, readonly [tone: string, word: string]>> = {
  created: ['rest', 'created'],
  starting: ['move', 'starting'],
  running: ['good', 'running'],
  temporarily_unavailable: ['warn', 'unavailable'],
  recovery_decision_required: ['warn', 'needs a decision'],
  stopping: ['move', 'stopping'],
  stopped: ['rest', 'stopped'],
  failed: ['bad', 'failed'],
};

export function StatusMark({ status }: { readonly status: SandboxStatus }) {
  const [tone, word] = LOOKS[status];
  return (
    <span className={`status ${tone}`} data-status={status}>
      {word}
    </span>
  );
}
