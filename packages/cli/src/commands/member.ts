import { Command } from 'commander';
import { createCommand as createAccept } from './member-accept.ts';
import { createCommand as createInvite } from './member-invite.ts';
import { createCommand as createLs } from './member-ls.ts';
import { createCommand as createRm } from './member-rm.ts';
import { createCommand as createRole } from './member-role.ts';

export function createCommand(): Command {
  const member = new Command('member').description(
    'People of an organization. They are kept by people: this takes a personal access token (svc token create), not an API key.',
  );
  for (const create of [createLs, createInvite, createAccept, createRole, createRm])
    member.addCommand(create());
  return member;
}
