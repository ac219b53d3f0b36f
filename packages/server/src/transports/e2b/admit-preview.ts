import { ERROR_STATUS } from '@svc/contract';
import type { Database } from '../../store/database.ts';
import { getSandbox } from '../../store/sandboxes.ts';
import type { AdmitById } from '../previews/admit-request.ts';
import { TRAFFIC_TOKEN_HEADER } from '../previews/our-credentials.ts';
import type { PreviewAnswer } from '../previews/preview-answer.ts';
import { LABEL } from './control/own-labels.ts';
import { fromE2bId } from './wire/e2b-address.ts';
import type { SandboxTokens } from './wire/sandbox-tokens.ts';
import { authorityOf } from './wire/token-authority.ts';

const NEEDS_TRAFFIC_TOKEN: PreviewAnswer = {
  status: ERROR_STATUS.forbidden,
  code: 'forbidden',
  title: 'This port needs the traffic token of its sandbox',
  message: `Send the trafficAccessToken of the sandbox in the header ${TRAFFIC_TOKEN_HEADER}.`,
};

/**
 * Admits requests to ports of sandboxes that E2B's clients made: `getHost` gives a host with the id. Such ports are open to all who
 * know the id, unless the sandbox was made without public traffic.
 */
export function admitByE2bId({
  database,
  tokens,
}: {
  readonly database: Database;
  readonly tokens: SandboxTokens;
}): AdmitById {
  return async ({ slug: label }, headers) => {
    const id = fromE2bId(label);
    const sandbox = id === undefined ? undefined : await getSandbox(database, id);
    if (sandbox === undefined || sandbox.removedAt !== null) return undefined;
    const traffic = sandbox.spec.labels?.[LABEL.traffic];
    if (traffic === 'public') return { sandbox, by: 'id' };
    const token = headers[TRAFFIC_TOKEN_HEADER];
    const maker =
      typeof token === 'string' ? tokens.makerOf({ kind: 'traffic', id: sandbox.id }, token) : undefined;
    if (maker !== undefined && (await authorityOf(database, maker, sandbox)) !== undefined)
      return { sandbox, by: 'id' };
    return traffic === undefined ? { slug: sandbox.slug } : NEEDS_TRAFFIC_TOKEN;
  };
}
