import { formatAddress } from '../policy/address.ts';
import type { EgressReport } from './egress-messages.ts';

/** Serializes a report to the engine (`read-report.ts`). */
export function writeReport(report: EgressReport): Buffer {
  const written =
    'pins' in report
      ? {
          ...report,
          pins: report.pins.map((pin) => ({ ...pin, address: formatAddress(pin.address) })),
        }
      : report;
  return Buffer.from(JSON.stringify(written));
}
