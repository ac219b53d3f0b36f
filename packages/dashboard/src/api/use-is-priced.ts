import { useCall } from './use-call.ts';

/** Whether the organization's plan has any price; without one amounts of money are hidden. Undefined: not known yet. */
export function useIsPriced(): boolean | undefined {
  const { data } = useCall('billing.get', {});
  return data && Object.values(data.effective_pricing).some((price) => price !== null && price > 0);
}
