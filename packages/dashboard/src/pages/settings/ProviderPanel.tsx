import { SvcError } from '@svc/sdk';
import { useState } from 'react';
import { useAction, useCall } from '../../api/use-call.ts';
import { Button } from '../../parts/Button.tsx';
import { Failure } from '../../parts/Failure.tsx';
import { TextField } from '../../parts/Field.tsx';
import { FormDialog } from '../../parts/FormDialog.tsx';
import { Loading } from '../../parts/Loading.tsx';
import { Panel } from '../../parts/Panel.tsx';
import { RemoveButton } from '../../parts/RemoveButton.tsx';

/** The OpenID Connect provider at which members can sign in. */
export function ProviderPanel() {
  const [isSetting, setSetting] = useState(false);
  const { data, error } = useCall('identityProvider.get', {});
  const remove = useAction('identityProvider.remove');
  const isNone = SvcError.is(error, 'not_found');
  return (
    <Panel
      title="Identity provider"
      hint="Members sign in with OpenID Connect, for this organization only"
      actions={<Button onClick={() => setSetting(true)}>{isNone ? 'Set it up' : 'Change it'}</Button>}
    >
      {error === null || isNone ? null : <Failure error={error} />}
      {isNone ? <p className="hint">None: members sign in with a password.</p> : null}
      {data === undefined || isNone ? null : (
        <>
          <dl className="facts">
            <Fact name="Issuer" value={data.issuer_url} />
            <Fact name="Client" value={data.client_id} />
            <Fact name="Domains whose users join" value={data.allowed_domains.join(', ') || 'none'} />
          </dl>
          <RemoveButton
            label="Remove the identity provider"
            question="Remove the identity provider?"
            verb="Remove it"
            input={{}}
            action={remove}
          >
            <p>Sessions that were signed in with it end at once.</p>
          </RemoveButton>
        </>
      )}
      {data === undefined && error === null ? <Loading rows={2} /> : null}
      {isSetting ? <ProviderForm onClose={() => setSetting(false)} /> : null}
    </Panel>
  );
}

function Fact({ name, value }: { readonly name: string; readonly value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function ProviderForm({ onClose }: { readonly onClose: () => void }) {
  const [issuer, setIssuer] = useState('');
  const [client, setClient] = useState('');
  const [secret, setSecret] = useState('');
  const [domains, setDomains] = useState('');
  const put = useAction('identityProvider.put', { onDone: onClose });
  const body = {
    issuer_url: issuer.trim(),
    client_id: client.trim(),
    client_secret: secret === '' ? null : secret,
    allowed_domains: domains.split(/[\s,]+/).filter(Boolean),
  };
  return (
    <FormDialog
      title="Identity provider"
      action="Check and save"
      isBusy={put.isPending}
      error={put.error}
      onSubmit={() => put.mutate({ body })}
      onClose={onClose}
    >
      <p className="hint">
        Register <code>{`${location.origin}/sign-in/provider`}</code> there as redirect address.
      </p>
      <TextField
        label="Issuer"
        field="issuer_url"
        placeholder="https://id.example.com"
        required
        value={issuer}
        onChange={setIssuer}
      />
      <TextField label="Client ID" field="client_id" required value={client} onChange={setClient} />
      <TextField
        label="Client secret"
        field="client_secret"
        hint="Leave empty if the provider needs none"
        type="password"
        autoComplete="off"
        value={secret}
        onChange={setSecret}
      />
      <TextField
        label="Domains"
        field="allowed_domains"
        hint="Users with a confirmed address in these domains join as members; all others need an invite"
        placeholder="example.com"
        value={domains}
        onChange={setDomains}
      />
    </FormDialog>
  );
}
