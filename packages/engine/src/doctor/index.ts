export { examineHost } from './examine-host.ts';
export type { Finding, HostReport } from './finding.ts';
