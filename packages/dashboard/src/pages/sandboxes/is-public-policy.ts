import type { RestCallOutput } from '@svc/sdk';

type Policy = NonNullable<NonNullable<RestCallOutput<'sandboxes.get'>['requested']>['network']['policy']>;
type AnyRule = Policy['rules'][number];

/** A rule of a policy, as it is shown or as it is sent. */
export type Rule = Pick<AnyRule, 'direction' | 'action' | 'destination'> &
  Partial<Pick<AnyRule, 'protocols' | 'ports'>>;

export type ShownPolicy = Omit<Policy, 'rules'> & { readonly rules: readonly Rule[] };

/** Whether it is the default policy: names, public addresses, and published ports. */
export function isPublicPolicy({
  default_egress: egress,
  default_ingress: ingress,
  rules,
}: ShownPolicy): boolean {
  const [names, open, ...more] = rules;
  return (
    egress === 'deny' &&
    ingress === 'allow' &&
    more.length === 0 &&
    isNamesRule(names) &&
    isRuleOf(open, 'public') &&
    isForAllPorts(open)
  );
}

/** Whether the rule allows DNS queries to the host. */
export function isNamesRule(rule: Rule | undefined): boolean {
  return isRuleOf(rule, 'host');
}

export function isForAllPorts({ protocols = [], ports = [] }: Partial<Rule> = {}): boolean {
  return protocols.length === 0 && ports.length === 0;
}

function isRuleOf(rule: Rule | undefined, group: string): boolean {
  if (rule?.direction !== 'egress' || rule.action !== 'allow' || typeof rule.destination !== 'object')
    return false;
  return 'group' in rule.destination && rule.destination.group === group;
}
