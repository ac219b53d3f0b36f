export { contains, parseAddress } from './address.ts';
export { ceilingsOf, readCeiling, writeCeiling } from './ceiling.ts';
export { checkCeiling } from './check-ceiling.ts';
export { decide } from './decide.ts';
export { explain, seenFromPorts } from './explain.ts';
export { embeddedIpv4, isPublicEverywhere, type HostNetworks } from './groups.ts';
export { resolvePolicy } from './resolve-policy.ts';
