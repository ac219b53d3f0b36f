import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { ACCOUNT } from '../../api/account.ts';
import { canAct, useOrganization } from '../../api/organization.ts';
import { useAction } from '../../api/use-call.ts';
import { Button } from '../../parts/Button.tsx';
import { CheckField, TextField } from '../../parts/Field.tsx';
import { Form, FormFailure } from '../../parts/Form.tsx';
import { FormDialog } from '../../parts/FormDialog.tsx';
import { Page } from '../../parts/Page.tsx';
import { Panel } from '../../parts/Panel.tsx';
import { showToast } from '../../parts/toast-list.ts';
import { navigate } from '../../router/location.ts';
import { Limits } from './Limits.tsx';
import { ProviderPanel } from './ProviderPanel.tsx';

/** Name, sign-in rules and deletion of the organization. */
export function SettingsPage() {
  const { role } = useOrganization();
  return (
    <Page title="Settings">
      <General />
      <Limits />
      {canAct(role, 'owner') ? <ProviderPanel /> : null}
      {canAct(role, 'owner') ? <End /> : null}
    </Page>
  );
}

function General() {
  const organization = useOrganization();
  const cache = useQueryClient();
  const [name, setName] = useState(organization.name);
  const [slug, setSlug] = useState(organization.slug);
  const [isStrict, setStrict] = useState(organization.mfa_required);
  const save = useAction('organizations.update', {
    onDone: (changed) => {
      void cache.invalidateQueries({ queryKey: ACCOUNT.queryKey });
      showToast('Saved');
      if (changed.slug !== organization.slug) navigate(`/orgs/${changed.slug}/settings`, { replace: true });
    },
  });
  const body = {
    ...(name.trim() === organization.name ? {} : { name: name.trim() }),
    ...(slug === organization.slug ? {} : { slug }),
    ...(isStrict === organization.mfa_required ? {} : { mfa_required: isStrict }),
  };
  return (
    <Panel title="Organization">
      <Form error={save.error} onSubmit={() => save.mutate({ body })}>
        <div className="fields">
          <TextField label="Name" field="name" required maxLength={128} value={name} onChange={setName} />
          <TextField
            label="Slug"
            field="slug"
            hint="Used in addresses, and as the namespace of JSON-RPC"
            required
            value={slug}
            onChange={setSlug}
          />
        </div>
        <CheckField
          label="Require a second factor of every member"
          field="mfa_required"
          hint="Turn on your own second factor first"
          checked={isStrict}
          onChange={setStrict}
        />
        <FormFailure />
        <div className="actions">
          <Button
            type="submit"
            look="primary"
            isBusy={save.isPending}
            disabled={Object.keys(body).length === 0}
          >
            Save
          </Button>
        </div>
      </Form>
    </Panel>
  );
}

function End() {
  const { slug, name } = useOrganization();
  const [isAsking, setAsking] = useState(false);
  const [typed, setTyped] = useState('');
  // Reloads the page, so that no data of the organization is left in memory.
  const remove = useAction('organizations.remove', { onDone: () => location.assign('/') });
  return (
    <Panel title="Delete the organization">
      <p className="hint">Its sandboxes, volumes, snapshots and keys are deleted for good.</p>
      <div className="actions">
        <Button look="danger" onClick={() => setAsking(true)}>
          Delete {name}
        </Button>
      </div>
      {isAsking ? (
        <FormDialog
          title={`Delete ${name}?`}
          action="Delete everything"
          isBusy={remove.isPending}
          error={remove.error}
          onSubmit={() => remove.mutate({ body: { confirm: typed } })}
          onClose={() => setAsking(false)}
        >
          <TextField
            label={`Type ${slug} to confirm`}
            field="confirm"
            required
            value={typed}
            onChange={setTyped}
          />
        </FormDialog>
      ) : null}
    </Panel>
  );
}
