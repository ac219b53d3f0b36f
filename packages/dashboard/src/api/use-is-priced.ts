import { useCall } from './use-call.ts';

/** Whether the organization pays a price for anything: without one no amount of money says anything. Undefined: not known yet. */
export function useIsPriced(): boolean | undefined {
  const { data } = useCall('billing.get', {});
  return data && Object.values(data.effective_pricing).some((price) => price !== null && price > 0);
}
