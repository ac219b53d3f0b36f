import type { RestCallOutput } from '@svc/sdk';
import type { SandboxStatus } from '@svc/contract/rest';
import type { QueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { changeShown } from '../../api/change-shown.ts';
import { useAction } from '../../api/use-call.ts';
import { Button } from '../../parts/Button.tsx';
import { ConfirmDialog } from '../../parts/Dialog.tsx';
import { showToast } from '../../parts/toast-list.ts';

type Sandbox = RestCallOutput<'sandboxes.get'>;

interface SandboxActionsProps {
  readonly sandbox: Pick<Sandbox, 'id' | 'name' | 'status' | 'ephemeral'>;
  /** Pictures alone, for a row of a table. */
  readonly isCompact?: boolean;
  readonly onRemoved?: () => void;
}

const STARTABLE: ReadonlySet<SandboxStatus> = new Set(['created', 'stopped', 'failed']);
const STOPPABLE: ReadonlySet<SandboxStatus> = new Set(['starting', 'running', 'temporarily_unavailable']);

/** Start, stop and delete with an optimistic update, which is undone when the server refuses. */
export function SandboxActions({ sandbox, isCompact = false, onRemoved }: SandboxActionsProps) {
  const [isAsking, setAsking] = useState(false);
  const { id, name, status } = sandbox;
  const input = { params: { sandbox_id: id } };
  const show = (shown: SandboxStatus) => ({
    optimistically: (cache: QueryClient) =>
      changeShown(cache, ['sandboxes.list', 'sandboxes.get'], { id }, { status: shown }),
  });
  const start = useAction('sandboxes.start', show('starting'));
  const stop = useAction('sandboxes.stop', show('stopping'));
  const remove = useAction('sandboxes.remove', {
    onDone: () => {
      setAsking(false);
      showToast(`${name} is deleted`);
      onRemoved?.();
    },
  });
  const label = (verb: string) =>
    isCompact ? { 'aria-label': `${verb} ${name}`, title: verb } : { children: verb };
  const look = isCompact ? 'quiet' : 'plain';
  return (
    <div className="actions">
      {STARTABLE.has(status) ? (
        <Button
          look={look}
          icon="play"
          {...label('Start')}
          isBusy={start.isPending}
          onClick={() =>
            start.mutate(input, { onError: (error) => showToast(`${name} does not start`, error) })
          }
        />
      ) : null}
      {STOPPABLE.has(status) ? (
        <Button
          look={look}
          icon="stop"
          {...label('Stop')}
          isBusy={stop.isPending}
          onClick={() =>
            stop.mutate(input, { onError: (error) => showToast(`${name} does not stop`, error) })
          }
        />
      ) : null}
      <Button look={look} icon="trash" {...label('Delete')} onClick={() => setAsking(true)} />
      {isAsking ? (
        <ConfirmDialog
          title={`Delete ${name}?`}
          action="Delete it"
          isBusy={remove.isPending}
          error={remove.error}
          onConfirm={() => remove.mutate(input)}
          onClose={() => setAsking(false)}
        >
          <p>It is stopped, and its disk is destroyed for good. Volumes and snapshots stay.</p>
        </ConfirmDialog>
      ) : null}
    </div>
  );
}
