export { waitUntil } from './wait-until.ts';
export { HELLO, ScriptedAgent } from './scripted-agent.ts';
export { TestAuthority, type TestTlsFiles } from './test-authority.ts';
