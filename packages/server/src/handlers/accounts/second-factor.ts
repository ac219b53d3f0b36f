import { PlatformError } from '@svc/contract';
import { codeUri, newCodeSecret } from '../../access/one-time-code.ts';
import { newRecoveryCodes, proveCode } from '../../access/sign-in.ts';
import { recordEverywhere } from '../../dispatch/record-everywhere.ts';
import { requireUser } from '../../dispatch/require-user.ts';
import type { RestCall } from '../../dispatch/rest-call.ts';
import { badField } from '../../dispatch/rest-dispatch.ts';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';
import {
  beginSecondFactor,
  confirmSecondFactor,
  findSecondFactor,
  removeSecondFactor,
  secondFactorContext,
  type SecondFactorRecord,
} from '../../store/second-factors.ts';
import type { AccountParts } from './sessions.ts';

const ISSUER = 'svc';

type Names = Extract<keyof RestHandlers, `secondFactor.${string}`>;

export function secondFactorHandlers(
  parts: Pick<AccountParts, 'database' | 'sealer'>,
): Pick<RestHandlers, Names> {
  const { database, sealer } = parts;
  return {
    'secondFactor.get': async (_input, call) => {
      const found = await findSecondFactor(database, requireUser(call).id);
      const isOn = found?.isConfirmed ?? false;
      return { is_on: isOn, recovery_codes_left: isOn ? (found?.recoveryHashes.length ?? 0) : 0 };
    },
    'secondFactor.begin': async (_input, call) => {
      const user = requireUser(call);
      const secret = newCodeSecret();
      const sealed = sealer.seal(secret, secondFactorContext(user.id));
      if (!(await beginSecondFactor(database, user.id, sealed)))
        throw new PlatformError(
          'invalid_state_transition',
          'Your second factor is on; turn it off before you set up another',
        );
      return { uri: codeUri(secret, ISSUER, user.email) };
    },
    'secondFactor.confirm': async ({ body }, call) => {
      const { id } = requireUser(call);
      const factor = await findSecondFactor(database, id);
      if (factor === undefined || factor.isConfirmed)
        throw new PlatformError(
          'invalid_state_transition',
          'There is no second factor that waits for a code',
        );
      await prove(parts, factor, body.code, call);
      const { codes, hashes } = newRecoveryCodes();
      await call.commit(async (change) => {
        await confirmSecondFactor(change.db, id, hashes);
        await recordEverywhere(change, id, event('second_factor_enabled', id));
      });
      return { recovery_codes: [...codes] };
    },
    'secondFactor.remove': async ({ body }, call) => {
      const { id } = requireUser(call);
      const factor = await findSecondFactor(database, id);
      if (factor?.isConfirmed !== true)
        throw new PlatformError('invalid_state_transition', 'Your second factor is not on');
      await prove(parts, factor, body.code, call);
      await call.commit(async (change) => {
        await removeSecondFactor(change.db, id);
        await recordEverywhere(change, id, event('second_factor_disabled', id));
      });
      return { message: 'Your second factor is off' };
    },
  };
}

async function prove(
  parts: Pick<AccountParts, 'database' | 'sealer'>,
  factor: SecondFactorRecord,
  code: string,
  call: RestCall,
): Promise<void> {
  if (!(await proveCode(parts, requireUser(call), { factor, code }, call.sourceAddress)))
    throw badField('code', 'is wrong, or was used before; wait for the next one');
}

function event(type: 'second_factor_enabled' | 'second_factor_disabled', userId: string) {
  return { type, category: 'user' as const, payload: { user_id: userId } };
}
