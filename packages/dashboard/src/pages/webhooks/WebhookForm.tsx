import type { RestCallOutput } from '@svc/sdk';
import { useState } from 'react';
import { useOrganization } from '../../api/organization.ts';
import { useAction } from '../../api/use-call.ts';
import { SelectField, TextField } from '../../parts/Field.tsx';
import { FormDialog } from '../../parts/FormDialog.tsx';
import { navigate } from '../../router/location.ts';
import type { Chosen } from './choose-events.ts';
import { EventChoice } from './EventChoice.tsx';
import { NewSecret } from './NewSecret.tsx';

export type Webhook = RestCallOutput<'webhooks.get'>;

export function NewWebhook({ onClose }: { readonly onClose: () => void }) {
  const { slug } = useOrganization();
  const make = useAction('webhooks.create');
  if (make.data !== undefined) {
    const { id, secret } = make.data;
    return <NewSecret secret={secret} onClose={() => navigate(`/orgs/${slug}/webhooks/${id}`)} />;
  }
  return (
    <Fields
      title="New webhook"
      action="Create"
      sending={make}
      onSend={(body) => make.mutate({ body })}
      onClose={onClose}
    />
  );
}

interface EditWebhookProps {
  readonly webhook: Webhook;
  readonly onClose: () => void;
}

export function EditWebhook({ webhook, onClose }: EditWebhookProps) {
  const change = useAction('webhooks.update', { onDone: onClose });
  return (
    <Fields
      title="Change the webhook"
      action="Save"
      known={webhook}
      sending={change}
      onSend={(body) => change.mutate({ params: { webhook_id: webhook.id }, body })}
      onClose={onClose}
    />
  );
}

interface FieldsProps {
  readonly title: string;
  readonly action: string;
  readonly known?: Webhook;
  readonly sending: { readonly isPending: boolean; readonly error: unknown };
  readonly onSend: (body: { url: string; description: string; event_types: [...Chosen] }) => void;
  readonly onClose: () => void;
}

function Fields({ title, action, known, sending, onSend, onClose }: FieldsProps) {
  const [url, setUrl] = useState(known?.url ?? '');
  const [description, setDescription] = useState(known?.description ?? '');
  const [chosen, setChosen] = useState<Chosen>(known?.event_types ?? ['sandbox.*']);
  return (
    <FormDialog
      title={title}
      action={action}
      isBusy={sending.isPending}
      error={sending.error}
      onSubmit={() => onSend({ url: url.trim(), description: description.trim(), event_types: [...chosen] })}
      onClose={onClose}
    >
      <TextField
        label="Address"
        field="url"
        hint="An https address that the server can reach"
        inputMode="url"
        placeholder="https://example.com/hooks"
        required
        autoFocus
        value={url}
        onChange={setUrl}
      />
      <TextField
        label="Description"
        field="description"
        hint="Optional"
        maxLength={200}
        value={description}
        onChange={setDescription}
      />
      <EventChoice chosen={chosen} onChange={setChosen} />
    </FormDialog>
  );
}

/** How long the previous secret still signs. */
const OVERLAPS = [
  ['86400', 'A day'],
  ['3600', 'An hour'],
  ['604800', 'A week'],
  ['0', 'No time: the old secret has leaked'],
] as const;

export function RotateSecret({ id, onClose }: { readonly id: string; readonly onClose: () => void }) {
  const [overlap, setOverlap] = useState<string>(OVERLAPS[0][0]);
  const rotate = useAction('webhooks.rotate');
  if (rotate.data !== undefined) return <NewSecret secret={rotate.data.secret} onClose={onClose} />;
  return (
    <FormDialog
      title="New secret"
      action="Create"
      isBusy={rotate.isPending}
      error={rotate.error}
      onSubmit={() => rotate.mutate({ params: { webhook_id: id }, body: { overlap_secs: Number(overlap) } })}
      onClose={onClose}
    >
      <p>
        Messages are signed with the new secret at once, and with the old one until the receiver is changed.
      </p>
      <SelectField
        label="Keep signing with the old secret for"
        field="overlap_secs"
        choices={OVERLAPS}
        value={overlap}
        onChange={setOverlap}
      />
    </FormDialog>
  );
}
