import { Images, type FetchProgress } from '@svc/sdk';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { useClient, useOrganization } from '../../api/organization.ts';
import { callKey } from '../../api/use-call.ts';
import { TextField } from '../../parts/Field.tsx';
import { formatBytes } from '../../parts/format-amount.ts';
import { FormDialog } from '../../parts/FormDialog.tsx';
import { Meter } from '../../parts/Meter.tsx';
import { showToast } from '../../parts/toast-list.ts';

/** Pulls an image from a registry and shows the progress. Closing the dialog only ends the wait. */
export function PullImage({ onClose }: { readonly onClose: () => void }) {
  const client = useClient();
  const { slug } = useOrganization();
  const cache = useQueryClient();
  const [reference, setReference] = useState('');
  const [progress, setProgress] = useState<FetchProgress | null>(null);
  const stop = useRef<AbortController>(null);
  useEffect(() => () => stop.current?.abort(), []);
  const pull = useMutation({
    mutationFn: (name: string) => {
      const abort = new AbortController();
      stop.current = abort;
      return Images.pull(name, { client, onProgress: setProgress, signal: abort.signal });
    },
    onSuccess: ({ reference: name }) => {
      showToast(`${name} is pulled`);
      onClose();
    },
    onSettled: () => cache.invalidateQueries({ queryKey: callKey(slug, 'images.list', {}) }),
  });
  return (
    <FormDialog
      title="Pull an image"
      action="Pull"
      isBusy={pull.isPending}
      error={pull.error}
      onSubmit={() => pull.mutate(reference.trim())}
      onClose={onClose}
    >
      <TextField
        label="Image"
        field="reference"
        hint="Passwords for private registries are under Secrets"
        placeholder="registry.example.com/name:tag"
        required
        autoFocus
        readOnly={pull.isPending}
        value={reference}
        onChange={setReference}
      />
      {pull.isPending ? (
        <div role="status">
          <Meter
            label={progress?.message ?? 'Connecting to the registry'}
            used={progress?.done_bytes ?? 0}
            limit={progress?.total_bytes ?? 1}
            format={formatBytes}
          />
        </div>
      ) : null}
    </FormDialog>
  );
}
