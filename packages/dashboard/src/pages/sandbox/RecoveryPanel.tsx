import { useAction } from '../../api/use-call.ts';
import { Button } from '../../parts/Button.tsx';
import { Failure } from '../../parts/Failure.tsx';
import { Panel } from '../../parts/Panel.tsx';
import { Time } from '../../parts/Time.tsx';
import type { SandboxRecord } from './sandbox-record.ts';

const CHOICES = [
  ['wait', 'Wait for the host', 'The sandbox continues as it was if the host comes back in time.'],
  ['restart', 'Start it again', 'With its disk as it is; running processes are lost.'],
  ['stop', 'Stop it', 'Its disk is kept.'],
] as const;

/** Shown while the host is out of reach: since when, and the possible actions. */
export function RecoveryPanel({ sandbox }: { readonly sandbox: SandboxRecord }) {
  const recover = useAction('sandboxes.recover');
  const { id, status } = sandbox;
  if (status !== 'recovery_decision_required' && status !== 'temporarily_unavailable') return null;
  const isDue = status === 'recovery_decision_required';
  return (
    <Panel
      title={isDue ? 'Choose how to recover' : 'The host is out of reach'}
      hint={
        <>
          Since <Time at={sandbox.temporarily_unavailable_since} />.{' '}
          {isDue ? 'The host did not come back in time.' : 'The host may still come back.'}
        </>
      }
    >
      {recover.error === null ? null : <Failure error={recover.error} />}
      {isDue ? (
        <ul className="choices">
          {CHOICES.map(([action, title, what]) => (
            <li key={action}>
              <Button
                isBusy={recover.isPending}
                onClick={() => recover.mutate({ params: { sandbox_id: id }, body: { action } })}
              >
                {title}
              </Button>
              <p className="hint">{what}</p>
            </li>
          ))}
        </ul>
      ) : (
        <p className="hint">
          You are asked what to do <Time at={sandbox.automatic_recovery_ends_at} />.
        </p>
      )}
    </Panel>
  );
}
